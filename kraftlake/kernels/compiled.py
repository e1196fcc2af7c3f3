"""The functions of the extension module `compiled.abi3.so` for type checkers, by the files that define them.

Python imports the extension in place of this file where it exists, so an import of this file shows that it is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kraftlake.kernels.batches.batch_records import *
    from kraftlake.kernels.batches.batch_walk import *
    from kraftlake.kernels.batches.checksum import *
    from kraftlake.kernels.batches.client_records import *
    from kraftlake.kernels.batches.compacted_records import *
    from kraftlake.kernels.batches.log_rows import *
    from kraftlake.kernels.batches.partition_values import *
    from kraftlake.kernels.batches.record_values import *
    from kraftlake.kernels.columns.broker_changes import *
    from kraftlake.kernels.columns.broker_counts import *
    from kraftlake.kernels.columns.change_buffers import *
    from kraftlake.kernels.columns.change_columns import *
    from kraftlake.kernels.columns.cluster_counts import *
    from kraftlake.kernels.columns.column_steps import *
    from kraftlake.kernels.columns.event_texts import *
    from kraftlake.kernels.columns.partition_moves import *
    from kraftlake.kernels.columns.typed_columns import *
    from kraftlake.kernels.memory import *
    from kraftlake.kernels.replay.change_state import *
    from kraftlake.kernels.replay.changed_rows import *
    from kraftlake.kernels.replay.indexes import *
    from kraftlake.kernels.replay.journal import *
    from kraftlake.kernels.replay.partition_journal import *
    from kraftlake.kernels.replay.row_lists import *
    from kraftlake.kernels.replay.row_places import *
    from kraftlake.kernels.replay.topic_records import *

    KRAFTLAKE_VERSION: str
    SOURCES: str
else:
    raise ImportError("its file is missing")
