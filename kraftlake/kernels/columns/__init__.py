"""Rows and values made into the columns of tables."""
