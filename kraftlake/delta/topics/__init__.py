"""Changes of topics and their partitions, as objects and as packed rows, and what they mean to one broker."""
