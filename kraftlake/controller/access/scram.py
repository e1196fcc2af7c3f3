"""Changes of SCRAM credentials. Source: org.apache.kafka.controller.ScramControlManager of Kafka 4.4."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from typing import Final

import attrs

from kraftlake.controller.errors import ApiError, ControllerApiError
from kraftlake.controller.result import ControllerResult
from kraftlake.controller.state import ControllerState
from kraftlake.image.kafka_names import SCRAM_MECHANISMS
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.metadata_records import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from kraftlake.records.serde import ApiMessageAndVersion

MIN_ITERATIONS: Final = 4_096
MAX_ITERATIONS: Final = 16_384
_HASHES: Final = {1: "sha256", 2: "sha512"}


@attrs.frozen(kw_only=True)
class ScramDeletion:
    """The removal of a user's credential of a mechanism (1: SCRAM-SHA-256, 2: SCRAM-SHA-512)."""

    name: str
    mechanism: int


@attrs.frozen(kw_only=True)
class ScramUpsertion:
    """A user's new credential; `salted_password` is PBKDF2 of the password with the salt and iterations."""

    name: str
    mechanism: int
    iterations: int
    salt: bytes = attrs.field(repr=False)
    salted_password: bytes = attrs.field(repr=False)

    @classmethod
    def of_password(cls, name: str, mechanism: int, password: str, salt: bytes, iterations: int) -> ScramUpsertion:
        """The upsertion for a password, as a client computes it."""
        salted = hashlib.pbkdf2_hmac(_HASHES[mechanism], password.encode(), salt, iterations)
        return cls(name=name, mechanism=mechanism, iterations=iterations, salt=salt, salted_password=salted)

    def to_record(self) -> ApiMessageAndVersion:
        """The record of the credential, from which the password can't be computed (RFC 5802)."""
        name = _HASHES[self.mechanism]
        client_key = hmac.digest(self.salted_password, b"Client Key", name)
        record = UserScramCredentialRecord(
            name=self.name,
            mechanism=self.mechanism,
            salt=self.salt,
            stored_key=hashlib.new(name, client_key).digest(),
            server_key=hmac.digest(self.salted_password, b"Server Key", name),
            iterations=self.iterations,
        )
        return ApiMessageAndVersion(record, 0)


def alter_user_scram_credentials(
    state: ControllerState, deletions: Sequence[ScramDeletion], upsertions: Sequence[ScramUpsertion]
) -> ControllerResult[dict[str, ApiError]]:
    """Change credentials; the response has an answer for each user, and a repeated user is refused."""
    answers: dict[str, ApiError] = {}
    changes: dict[str, ScramDeletion | ScramUpsertion] = {}
    wanted: list[ScramDeletion | ScramUpsertion] = [*deletions, *upsertions]
    for change in wanted:
        if answers.get(change.name, ApiError.NONE).is_failure:
            continue
        try:
            if change.name in changes:
                del changes[change.name]
                raise ControllerApiError(ErrorCode.DUPLICATE_RESOURCE, "A user can be changed only once in a request.")
            _check(state, change)
            changes[change.name] = change
            answers[change.name] = ApiError.NONE
        except ControllerApiError as refusal:
            answers[change.name] = refusal.api_error
    records = []
    for name, change in changes.items():
        if isinstance(change, ScramDeletion):
            removal = RemoveUserScramCredentialRecord(name=name, mechanism=change.mechanism)
            records.append(ApiMessageAndVersion(removal, 0))
        elif change.salted_password:
            records.append(change.to_record())
        else:
            # Java has no HMAC with an empty key, so that Kafka answers with this error as well.
            answers[name] = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "The salted password is empty.")
    return ControllerResult(records, answers, atomic=True)


def _check(state: ControllerState, change: ScramDeletion | ScramUpsertion) -> None:
    if not state.metadata_version.is_scram_supported:
        raise ControllerApiError(ErrorCode.UNSUPPORTED_VERSION, "SCRAM credentials need metadata.version 3.5-IV2.")
    if not change.name:
        raise ControllerApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "The name of a user can't be empty.")
    if change.mechanism not in _HASHES:
        raise ControllerApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, f"There is no mechanism {change.mechanism}.")
    if isinstance(change, ScramUpsertion):
        if not MIN_ITERATIONS <= change.iterations <= MAX_ITERATIONS:
            raise ControllerApiError(
                ErrorCode.UNACCEPTABLE_CREDENTIAL,
                f"{change.iterations} iterations won't do: {MIN_ITERATIONS} to {MAX_ITERATIONS} are allowed.",
            )
    elif change.name not in state.image.scram.mechanisms.get(change.mechanism, {}):
        raise ControllerApiError(
            ErrorCode.RESOURCE_NOT_FOUND,
            f"User {change.name!r} has no {SCRAM_MECHANISMS[change.mechanism]} credential.",
        )
