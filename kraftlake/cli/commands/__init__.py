"""One module for each command: its options, what it asks the rooms below, which view shows the answer."""
