"""The commands that change a controlled lake, one module for each kind of thing that they change."""
