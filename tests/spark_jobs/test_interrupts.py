"""An interrupt ends a run on Spark without a word, whatever py4j was doing."""

from __future__ import annotations

import logging
import signal
import threading

import pytest

from kraftlake.spark_jobs.interrupts import interrupt_handler_kept, silent_interrupts


def py4j_says(told: logging.Logger) -> None:
    """As py4j does within a call: by the root logger, from a file of its own."""
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        source = compile(
            "log.exception('KeyboardInterrupt while sending command.')", "/lib/py4j/java_gateway.py", "exec"
        )
        exec(source, {"log": told})


def test_what_py4j_says_is_dropped_during_a_run_only(caplog: pytest.LogCaptureFixture) -> None:
    root = logging.getLogger()
    with silent_interrupts():
        py4j_says(root)
        logging.getLogger("py4j.clientserver").error("Broken pipe")
        root.error("something else")
    assert [record.message for record in caplog.records] == ["something else"]
    py4j_says(root)
    assert len(caplog.records) == 2


def test_a_handler_that_was_replaced_is_put_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with interrupt_handler_kept():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGINT) is before


def test_handlers_are_left_alone_in_other_threads() -> None:
    faults: list[BaseException] = []

    def in_a_thread() -> None:
        try:
            with interrupt_handler_kept():
                pass
        except BaseException as fault:
            faults.append(fault)

    thread = threading.Thread(target=in_a_thread)
    thread.start()
    thread.join()
    assert not faults
