from __future__ import annotations

import subprocess
import sys

from kraftlake.kafka_files.file_names import partition_of, segment_base_offset, segment_name, snapshot_id, snapshot_name


def test_reading_imports_no_arrow_and_no_reader_of_archives() -> None:
    modules = ("open_source", "writer", "check")
    code = f"import sys; {'; '.join(f'import kraftlake.kafka_files.{name}' for name in modules)}; print(*sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    loaded = set(done.stdout.split())
    assert not {"pyarrow", "numpy", "rich", "kraftlake.kafka_files.archives.archive"} & loaded


def test_names_say_offsets_and_are_made_of_them() -> None:
    assert segment_base_offset(segment_name(5737)) == 5737
    assert snapshot_id(snapshot_name(4593, 2)) == (4593, 2)
    for name in ("5737.log", segment_name(1) + ".deleted", "9" * 20 + ".log", "٠" * 20 + ".log", ""):
        assert segment_base_offset(name) is None
    for name in ("1-2.checkpoint", snapshot_name(1, 2) + ".part", "9" * 20 + "-0000000000.checkpoint"):
        assert snapshot_id(name) is None
    assert snapshot_id("0" * 20 + "-9999999999.checkpoint") is None
    assert [partition_of(name) for name in ("a-b-12", "__cluster_metadata-0", "a", "-1")] == [
        "a-b-12",
        None,
        None,
        None,
    ]
