"""What docs/recovery.md says of a sound backup of a lake while a writer appends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import kraftlake
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.replay.imports.import_log import import_source
from tests.metadata_log.live_writer import writing
from tests.metadata_log.log_batches import noop_batch
from tests.replay.sample_logs import directory_of

PAGE = Path(__file__).parents[2] / "docs" / "recovery.md"
COPIES = 12 if os.environ.get("KRAFTLAKE_TESTS") == "long" else 1

TRIES = 5
"""The page says to copy again where `verify` refuses a copy: a listing beside a fast writer may miss a version."""


def test_a_lake_is_backed_up_as_the_page_says_while_a_writer_appends(tmp_path: Path) -> None:
    section = PAGE.read_text().split("\n## Backing up a lake\n")[1].split("\n## ")[0]
    script = section.split("```sh\n")[1].split("```")[0]
    import_source(directory_of("kafka-4.4"), tmp_path / "LAKE")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    with writing(tmp_path / "LAKE", upkeep_each=150):
        for number in range(COPIES):
            before = MetadataLog.open(tmp_path / "LAKE").end_offset
            for again in range(TRIES):
                place = tmp_path / f"copy-{number}-{again}"
                done = subprocess.run(
                    ["bash", "-ec", script.replace("COPY", place.name)],
                    cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
                )  # fmt: skip
                if done.returncode == 0:
                    break
            assert done.returncode == 0, done.stdout + done.stderr
            assert done.stdout.endswith("sound\n")
            copy = MetadataLog.open(place)
            assert copy.end_offset >= before
            copy.append([noop_batch(copy.end_offset, epoch=copy.epoch)])
            assert kraftlake.open(place).verify().sound
    assert MetadataLog.open(tmp_path / "LAKE").end_offset > before
