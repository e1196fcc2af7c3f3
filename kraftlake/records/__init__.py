"""The vocabulary: every record of a KRaft metadata log, its wire and JSON form, and the batches that hold records.

The Arrow forms are in `kraftlake.records.rows` and `kraftlake.records.typed_rows`, which import pyarrow.
"""
