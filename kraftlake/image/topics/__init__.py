"""All topics and their partitions: as objects, and for many of them as packed rows of numbers."""
