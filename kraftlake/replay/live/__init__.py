"""Logs that grow while they are read: what is appended to a lake or to the directory of a node, step by step."""
