"""Fetching of a follower from its leader, and copying of a replica to another log directory."""
