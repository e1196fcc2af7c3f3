"""The replay of a log: cut into metadata deltas, once, for images, tables and questions."""
