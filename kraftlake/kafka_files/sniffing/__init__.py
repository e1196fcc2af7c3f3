"""Recognition of a SOURCE by its content."""
