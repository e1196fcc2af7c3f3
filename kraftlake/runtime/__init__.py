"""Basic tools for all packages: errors, clocks, event queues, metrics, logging, moments, tables for notebooks."""

__version__ = "0.2.0"
