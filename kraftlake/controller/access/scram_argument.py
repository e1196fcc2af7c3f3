"""The argument of `kafka-storage format --add-scram`: `SCRAM-SHA-256=[name=alice,password=secret]`."""

from __future__ import annotations

import base64
import binascii
import re
import secrets
from collections.abc import Callable

from kraftlake.controller.access.scram import MAX_ITERATIONS, MIN_ITERATIONS, ScramUpsertion
from kraftlake.image.kafka_names import SCRAM_NUMBERS
from kraftlake.records.metadata_version import MetadataVersion
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.runtime.errors import UsageError

_FORM = re.compile(r"([A-Z0-9-]+)=\[(.*)\]")
_KEYS = frozenset(("name", "password", "salt", "iterations", "saltedpassword"))


def scram_record(text: str, version: MetadataVersion, password_of: Callable[[str], str]) -> ApiMessageAndVersion:
    """The record of a credential; the default salt is random. Salts and salted passwords are base64.

    `password_of` gets the password of a user that is given without one. Raises UsageError for a malformed argument, and
    if `version` has no SCRAM.
    """
    form = _FORM.fullmatch(text)
    if form is None or form[1] not in SCRAM_NUMBERS:
        raise UsageError(f"A SCRAM user is {' or '.join(SCRAM_NUMBERS)}=[name=NAME,password=PASSWORD].")
    if not version.is_scram_supported:
        raise UsageError(f"SCRAM users need metadata.version 3.5-IV2, and this is {version}.")
    given = dict(part.partition("=")[::2] for part in form[2].split(","))
    if not given.get("name") or set(given) - _KEYS or {"password", "saltedpassword"} <= {*given}:
        raise UsageError("A SCRAM user has a name, and either a password or a saltedpassword, salt and iterations.")
    iterations = given.get("iterations", str(MIN_ITERATIONS))
    if not iterations.isdecimal() or not MIN_ITERATIONS <= int(iterations) <= MAX_ITERATIONS:
        raise UsageError(f"{iterations!r} is no number of iterations from {MIN_ITERATIONS} to {MAX_ITERATIONS}.")
    salt = _decoded(given["salt"]) if "salt" in given else secrets.token_bytes(24)
    name, mechanism = given["name"], SCRAM_NUMBERS[form[1]]
    if "saltedpassword" not in given:
        password = given["password"] if "password" in given else password_of(name)
        upsertion = ScramUpsertion.of_password(name, mechanism, password, salt, int(iterations))
    elif "salt" not in given:
        raise UsageError("The salt of a saltedpassword is missing.")
    else:
        upsertion = ScramUpsertion(
            name=name,
            mechanism=mechanism,
            iterations=int(iterations),
            salt=salt,
            salted_password=_decoded(given["saltedpassword"]),
        )
    return upsertion.to_record()


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise UsageError(f"{text!r} is not base64.") from None
