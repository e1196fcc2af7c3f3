"""All record types of a KRaft metadata log, their wire and JSON forms, and the batches that hold records.

The Arrow forms are in `kraftlake.records.rows` and `kraftlake.records.typed_rows`, which import pyarrow.
"""
