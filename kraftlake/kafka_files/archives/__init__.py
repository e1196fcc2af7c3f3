"""Metadata directories inside `.tar`, `.tar.gz` and `.zip` archives, streamed and never extracted."""
