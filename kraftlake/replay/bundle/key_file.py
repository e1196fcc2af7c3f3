"""The key file of a bundle's pseudonyms, which stays with the owner of the log and translates answers back."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any, Final

from kraftlake.replay.bundle.pseudonyms import Pseudonyms
from kraftlake.runtime.arguments import path_text
from kraftlake.runtime.errors import CorruptDataError, EnvironmentFaultError
from kraftlake.runtime.whole_file import check_folder_of, write_whole

_VERSION: Final = 1
_KEY_BYTES: Final = 32
_MAX_SIZE: Final = 256 << 20


def new_pseudonyms(path: str | os.PathLike[str], *, extend: bool = False) -> Pseudonyms:
    """Pseudonyms by a new key, or with `extend` by the one in the key file, which has those of an earlier bundle.

    Raises EnvironmentFaultError for a key file that exists, and with `extend` as `read_key`.
    """
    file = Path(path_text(path))
    if extend:
        key, names = read_key(file)
        return Pseudonyms(key, names)
    check_folder_of(file)
    if file.exists() or file.is_symlink():
        raise EnvironmentFaultError(
            f"{file} exists already: give --extend-key to go on with its pseudonyms, or another name for a new key."
        )
    return Pseudonyms(secrets.token_bytes(_KEY_BYTES))


def write_key(path: str | os.PathLike[str], pseudonyms: Pseudonyms) -> None:
    """Write a key file for its owner alone; raises EnvironmentFaultError where the disk refuses."""
    form = {"version": _VERSION, "key": pseudonyms.key.hex(), "names": dict(sorted(pseudonyms.made.items()))}
    try:
        write_whole(Path(path), [json.dumps(form, indent=1).encode()])
    except OSError as fault:
        raise EnvironmentFaultError(f"{path} can't be written: {fault.strerror or fault}.") from None


def read_key(path: str | os.PathLike[str]) -> tuple[bytes, dict[str, str]]:
    """Read the key and the names by pseudonym.

    Raises EnvironmentFaultError for a missing file, CorruptDataError for another one.
    """
    file = Path(path_text(path))
    try:
        if file.stat().st_size > _MAX_SIZE:
            raise CorruptDataError(f"{file} is too large for a bundle's key file.")
        form: Any = json.loads(file.read_bytes())
    except OSError as fault:
        raise EnvironmentFaultError(f"{file} can't be read: {fault.strerror or fault}.") from None
    except (ValueError, RecursionError):
        form = None
    try:
        key, names = bytes.fromhex(form["key"]), form["names"]
        sound = form["version"] == _VERSION and len(key) == _KEY_BYTES
        sound = sound and all(isinstance(one, str) for pair in names.items() for one in pair)
    except (TypeError, KeyError, ValueError, AttributeError):
        sound = False
    if not sound:
        raise CorruptDataError(f"{file} is no key file of a bundle: give the file that --pseudonyms made.")
    return key, names
