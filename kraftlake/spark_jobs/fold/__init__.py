"""Folds that no single machine would do: a log dealt out by topic id, folded shard by shard on Spark's executors.

Doors: `build_snapshot`, `image_frame` and `local_changes_frame` of `kraftlake.spark_jobs`. How it goes: `plan` says
which process reads what, `kraftlake.tables.shards` deals records out and folds them, a shard with the bulk replay that
the rest of kraftlake uses and the driver all that is of no topic, `layout` and `topic_files` write the snapshot; only
`frames` and the doors know Spark.
"""
