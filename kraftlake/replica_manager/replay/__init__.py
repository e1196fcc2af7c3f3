"""The actions of one broker while a metadata log is replayed, each with the record that caused it."""
