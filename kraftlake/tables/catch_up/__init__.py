"""Brings tables up to the end of a log: chunks of its rows in, folded images and rows of each table out."""
