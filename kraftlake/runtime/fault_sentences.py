"""What a user is told of an exception that is not about the data: one sentence."""

from __future__ import annotations

from kraftlake.runtime.errors import KraftlakeError


def sentence_of(error: Exception) -> str:
    """The sentence of an error of kraftlake, of the system, or of a bug, which is to be reported."""
    if isinstance(error, KraftlakeError):
        return str(error)
    if isinstance(error, MemoryError):
        return f"this takes more memory than there is{f': {error}' if str(error) else ''}"
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}"
    return f"a fault in kraftlake itself ({type(error).__name__}: {error}); please report it"
