"""Reading the log: by offset, as it grows, and in pieces for several processes."""
