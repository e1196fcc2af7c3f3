"""One module for each command: its options, its calls to the rooms below, and the view that shows the answer."""
