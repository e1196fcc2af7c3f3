"""Tables as releases wrote them that sealed neither data files nor commits: for damage that only other checks see."""

from __future__ import annotations

import json
import re
from pathlib import Path

from kraftlake.metadata_log.delta_table.actions import SEAL

_SEAL = re.compile(r"\.c[0-9a-f]{8}(?=(?:\.zstd)?\.parquet)")


def unseal(table: Path) -> None:
    """Take the seals off the commits and files of a table without a checkpoint."""
    for commit in (table / "_delta_log").glob("*.json"):
        actions = [json.loads(_SEAL.sub("", line)) for line in commit.read_text().splitlines()]
        for action in actions:
            action.get("commitInfo", {}).pop(SEAL, None)
        commit.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
    for file in table.glob("*.parquet"):
        file.rename(file.with_name(_SEAL.sub("", file.name)))
