"""SQL over a log's derived tables, by DuckDB in this process: read only, and within limits."""
