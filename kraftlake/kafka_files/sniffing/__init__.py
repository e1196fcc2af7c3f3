"""What a SOURCE is, by its content."""
