"""A controller as a process: `kraftlake controller`."""
