"""The clients that made a change, in words."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from typing import Any

from kraftlake.runtime.words import in_words

_WITNESSES = {"who": "by ", "audit": "audit: by "}


class Certainty(enum.Enum):
    """How many clients can have made a change."""

    ONE = enum.auto()
    SEVERAL = enum.auto()
    NONE = enum.auto()


def who_words(form: Mapping[str, Any]) -> Iterator[tuple[str, Certainty]]:
    """The sentence of each kind of witness, from the fields `who` and `audit` of `Who.to_json`."""
    for name, by in _WITNESSES.items():
        found = form.get(name)
        if found is None:
            continue
        if found["reason"] is None:
            yield f"{by}{_client_words(found)}", Certainty.ONE
        elif found["candidates"]:
            clients = in_words([_client_words(one) for one in found["candidates"]], "or")
            yield f"{by}{clients}: {found['reason']}", Certainty.SEVERAL
        else:
            yield f"{by}unknown: {found['reason']}", Certainty.NONE


def _client_words(client: Mapping[str, Any]) -> str:
    host = "" if client["host"] is None else f" from {client['host']}"
    return f"{client['principal']}{host}, {client['request']}"
