"""The obstacles of an upgrade: what a controller, or the nodes of a release, refuse."""
