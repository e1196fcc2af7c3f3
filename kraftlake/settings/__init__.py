"""The configs that Kafka 4.4 defines for nodes, topics, groups and client metrics, declared once.

Each has its type, default and validator, where it may be set, and what this project does with it.
"""
