"""Folds that no single machine could do: a log sharded by topic id, replayed shard by shard on Spark's executors.

Entry points: `build_snapshot`, `image_frame` and `local_changes_frame` of `kraftlake.spark_jobs`.
`kraftlake.tables.shards` plans the records that each process reads, distributes records, and replays those of a shard,
and in the driver those of no topic, by a LogReplay each (`replayed`); each entry point makes another result of the
replays. Only `frames` and the entry points use Spark; `topic_files` writes the topics of a snapshot.
"""
