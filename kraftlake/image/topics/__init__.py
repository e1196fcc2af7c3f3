"""All topics and their partitions: as objects, and in large images as packed rows of numbers."""
