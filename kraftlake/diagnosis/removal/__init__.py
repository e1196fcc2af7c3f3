"""What lies on a broker, what its loss would take, and the moves that empty it."""
