"""What one broker does while a metadata log is replayed, and the record that caused it."""
