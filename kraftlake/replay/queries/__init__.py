"""What a user asks of a source: images, changes, local changes, exports, the state of the quorum."""
