"""Replays a log into images and local changes, imports it into a lake, verifies, exports and restores it."""
