"""The configs that Kafka 4.4 defines for nodes, topics, groups and client metrics, declared once.

Each definition has the type, default and validator, the dynamic update mode, and the use in kraftlake.
"""
