"""The error codes beside those of kio, which decodes answers."""

from __future__ import annotations

from kio.schema.errors import ErrorCode as KioErrorCode

from kraftlake.protocol.error_code import ErrorCode


def test_an_error_equals_the_one_that_kio_reads_from_an_answer() -> None:
    read = {error.name.upper(): error for error in KioErrorCode}
    newer = {error.name for error in ErrorCode} - set(read)
    assert newer == {"CONTROLLER_ID_NOT_REGISTERED"}
    assert {error.name: error for error in ErrorCode if error.name in read} == {
        name: error for name, error in read.items() if name in ErrorCode.__members__
    }
    assert KioErrorCode.not_controller in {ErrorCode.NOT_CONTROLLER}


def test_a_code_without_a_name_is_an_unknown_server_error() -> None:
    assert ErrorCode.of(KioErrorCode.not_controller) is ErrorCode.NOT_CONTROLLER
    assert ErrorCode.of(4_711) is ErrorCode.UNKNOWN_SERVER_ERROR
