"""Requests of clients and nodes to kraftlake's processes: frames, a listener, and the dispatch to handlers."""
