"""What an import did."""

from __future__ import annotations

from typing import Any

import attrs

from kraftlake.runtime.json_names import fields_as_json


@attrs.frozen(kw_only=True)
class ImportReport:
    """The outcome of one import; offsets are inclusive, None where nothing was imported.

    `records`, `batches` and `snapshots` count what was new, `already_there` the offsets that the lake already held with
    the same content, `before_lake` the offsets below the lake's start, which were left out. `start_offset` and
    `end_offset` (exclusive) are the lake's now. `committed_to`: offsets below it are known to be committed. `torn`
    says, in words, where the source is torn off; everything before that is in the lake. `chain` is the last link of the
    lake's chain of hashes as text, OFFSET:HASH, to hold the lake to later (`verify --at-least`); None where it has no
    rows.
    """

    lake: str
    source: str
    created: bool
    from_offset: int | None
    to_offset: int | None
    records: int
    batches: int
    snapshots: int
    already_there: int
    before_lake: int
    start_offset: int
    end_offset: int
    committed_to: int
    cluster_id: str | None
    torn: str | None
    chain: str | None

    def to_json(self) -> dict[str, Any]:
        """The form of `kraftlake import --json`."""
        form = fields_as_json(self)
        ends = {"from": form.pop("fromOffset"), "to": form.pop("toOffset")}
        return form | ends | {"committed_to": self.committed_to}  # the name that scripts know
