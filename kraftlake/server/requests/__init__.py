"""Requests of clients and nodes as processes of our own answer them: frames, a listener, and who is asked what."""
