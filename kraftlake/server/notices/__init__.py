"""Notices of findings that appear and clear: kept on the disk until a URL or a command has taken them."""
