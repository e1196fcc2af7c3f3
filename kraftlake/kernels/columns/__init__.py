"""Converts rows and values into the columns of tables."""
