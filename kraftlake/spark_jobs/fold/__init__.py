"""Folds that no single machine would do: a log dealt out by topic id, replayed shard by shard on Spark's executors.

Doors: `build_snapshot`, `image_frame` and `local_changes_frame` of `kraftlake.spark_jobs`. How it goes:
`kraftlake.tables.shards` plans which process reads what, deals records out, and replays those of a shard, and in the
driver those of no topic, by a LogReplay each (`replayed`); each door is another end of that. Only `frames` and the
doors know Spark; `topic_files` writes the topics of a snapshot.
"""
