"""Compares copies of a metadata log: the copies that are one log, their partings, the records of only one of them."""
