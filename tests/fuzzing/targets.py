"""What reads bytes from outside. A target takes any bytes, and refuses what is wrong by the errors that it names.

A target raises AssertionError where two ways to read the same bytes differ.
"""

from __future__ import annotations

from tests.fuzzing import of_caches, of_files, of_logs, of_replicas, of_stores, of_wire

TARGETS = {
    **of_logs.TARGETS, **of_replicas.TARGETS, **of_caches.TARGETS, **of_wire.TARGETS, **of_files.TARGETS,
    **of_stores.TARGETS,
}  # fmt: skip
OF_KERNELS = ("batches", "replayed", "cleaned", "produced", "segments", "snapshots", "replicas", "images")
"""The targets that compiled code reads."""
