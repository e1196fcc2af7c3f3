"""Logs that grow: a lake that others append to, the directory of a node, a live quorum."""
