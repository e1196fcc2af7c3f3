"""What all rooms use: errors, clocks, event queues, metrics, logging, moments of a log, tables for notebooks."""

__version__ = "0.1.0"
