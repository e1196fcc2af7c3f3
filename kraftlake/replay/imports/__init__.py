"""The writers of a lake: imports, following a live node, forks, snapshots that a lake keeps."""
