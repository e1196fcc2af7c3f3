"""Errors on their way between processes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from kraftlake.replay.loader.record_faults import UndecodableRecordError
from kraftlake.runtime import errors
from kraftlake.runtime.errors import KraftlakeError

_KINDS: Final[dict[str, Any]] = {**vars(errors), UndecodableRecordError.__name__: UndecodableRecordError}


def fault_to_json(fault: KraftlakeError) -> str:
    """An error as JSON, to pass it between processes: Spark would make a traceback of an exception."""
    return json.dumps({"kind": type(fault).__name__, "text": str(fault), "offset": getattr(fault, "offset", None)})


def raise_first(faults: Iterable[str]) -> None:
    """Raise the error with the lowest offset, if there is any."""
    found = [json.loads(fault) for fault in faults]
    if not found:
        return
    first = min(found, key=lambda fault: (fault["offset"] is None, fault["offset"] or 0))
    kind = _KINDS.get(first["kind"], KraftlakeError)
    fault: KraftlakeError = kind.__new__(kind, first["text"])  # not all have constructors that take a text alone
    if first["offset"] is not None:
        vars(fault)["offset"] = first["offset"]
    raise fault


@contextmanager
def earliest(faults: Iterable[str]) -> Iterator[None]:
    """Raise the error with the lowest offset of the shards' faults and of what is done in this context."""
    try:
        yield
    except KraftlakeError as fault:
        raise_first([*faults, fault_to_json(fault)])
    raise_first(faults)
