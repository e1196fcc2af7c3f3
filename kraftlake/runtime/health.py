"""The health of a process: whether it works, and whether it is ready; each with one line why not."""

from __future__ import annotations

from collections.abc import Callable

import attrs

Why = Callable[[], str | None]
"""Returns one line why not; None where nothing is wrong."""


def _nothing() -> None:
    return None


@attrs.frozen(kw_only=True)
class Health:
    """The answers of `/healthz` and `/readyz`, for any thread.

    `dead` says why only a new start of the process helps, `unready` why it does not do its work now.
    """

    dead: Why = _nothing
    unready: Why = _nothing
