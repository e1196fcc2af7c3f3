"""The journal of an application: a line of JSON for each request, durable before the next one is sent."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Self

from kraftlake.runtime.errors import EnvironmentFaultError, UsageError

_MODE: Final = 0o600


class Journal:
    """Appends lines to a file, which no other process may append to meanwhile; `also` gets each line after it."""

    def __init__(self, path: Path, also: Callable[[Mapping[str, Any]], object] = lambda _: None) -> None:
        """Open or create the file. Raises EnvironmentFaultError, UsageError where another process has it."""
        self.path = path
        self._also = also
        try:
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, _MODE)
        except OSError as fault:
            raise EnvironmentFaultError(f"{path} can't be written: {fault.strerror or fault}.") from fault
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._descriptor)
            raise UsageError(f"Another undo writes to {path}: wait until it ends, then run this one again.") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def write(self, line: Mapping[str, Any]) -> None:
        """Append a line, and wait until it is durable. Raises EnvironmentFaultError."""
        try:
            os.write(self._descriptor, json.dumps(line, separators=(",", ":")).encode() + b"\n")
            os.fsync(self._descriptor)
        except OSError as fault:
            raise EnvironmentFaultError(f"{self.path} can't be written: {fault.strerror or fault}.") from fault
        self._also(line)
