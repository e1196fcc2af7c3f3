"""Recognises a SOURCE by its content."""
