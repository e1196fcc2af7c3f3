"""The queries on a source: images, changes, local changes, exports, the state of the quorum."""
