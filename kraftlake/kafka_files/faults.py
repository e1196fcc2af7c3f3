"""The errors of Kafka's files, with their position as attributes."""

from __future__ import annotations

import os

import attrs

from kraftlake.runtime.errors import CorruptDataError, KraftlakeError, NotASourceError


@attrs.frozen
class TornTail:
    """The bytes after the last whole batch of a log: the rest of a write that a crash or a copy interrupted.

    `position` is their start in `file`, in bytes, and `offset` the expected offset of their first batch, which is the
    end of the usable log. `is_cut` is True if the bytes end too soon or are zeros, as in a copy of a log during a
    write; otherwise the bytes are a batch of full size with a wrong checksum, which may have been whole once.
    """

    file: str
    position: int
    offset: int
    reason: str
    is_cut: bool = True

    def __str__(self) -> str:
        return f"{self.file}: torn at position {self.position}, offset {self.offset}: {self.reason}"


class BrokenFileError(CorruptDataError):
    """Reports a file of the log that is damaged at byte `position`, where `offset` should follow."""

    def __init__(self, file: str, position: int, offset: int, message: str) -> None:
        super().__init__(f"{file}: broken at position {position}, offset {offset}: {message}")
        self.file = file
        self.position = position
        self.offset = offset
        self.message = message


class RemovedFileError(NotASourceError):
    """Reports a file or folder that does not exist, or no longer exists: a live node deletes old files."""


def unreadable(path: str, error: OSError) -> KraftlakeError:
    """Return the error for a `path` that the operating system can't read."""
    if isinstance(error, FileNotFoundError):
        return RemovedFileError(f"{path} does not exist (or was removed while it was read: try again)")
    if isinstance(error, PermissionError):
        return NotASourceError(f"{path} may not be read by this user: change its permissions or copy it")
    return NotASourceError(f"{path} can't be read: {os.strerror(error.errno) if error.errno else error}")
