"""Comparison of two clusters by meaning: topics by name, ACLs by content; a side may be a declared file."""
