"""A run whose JVM is gone ends with a sentence, or as the interrupt that both were sent wants it."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from py4j.protocol import Py4JNetworkError

from kraftlake.runtime.errors import EnvironmentFaultError, LakeError
from kraftlake.spark_jobs.run_session import RunSession, interrupt_handler_kept, silent_interrupts
from kraftlake.spark_jobs.stream_faults import cause_of

ROOT = Path(__file__).parents[2]

LOSES_ITS_JVM = """
import os, signal, warnings
from pyspark import SparkContext
from kraftlake.cli.faults import exit_code_of
from kraftlake.spark_jobs.run_session import RunSession

warnings.simplefilter("error")
started = []

def run():
    with RunSession(None, "lost") as session:
        started.append(spark := session.get())
        jvm = SparkContext._gateway.proc
        try:
            jvm.kill()
            jvm.wait()
            spark.range(3).count()
        finally:  # as a run stops its stream
            spark.catalog.clearCache()

def run_that_ends_with_its_jvm():
    with RunSession(*started, "lost"):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            started[0].catalog.clearCache()

print(exit_code_of(run), exit_code_of(run_that_ends_with_its_jvm))
"""


@pytest.mark.spark
@pytest.mark.skipif(os.environ.get("KRAFTLAKE_TESTS") != "long", reason="KRAFTLAKE_TESTS=long: a JVM of its own")
def test_a_command_whose_jvm_is_killed_says_so_unless_it_was_to_end_itself() -> None:
    done = subprocess.run([sys.executable, "-c", LOSES_ITS_JVM], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "1 143\n"
    assert "Spark's JVM ended in the middle of the run" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def lost(word: str) -> Py4JNetworkError:
    return Py4JNetworkError(word)


def run_that_is_not_left_in_order(began: BaseException) -> None:
    with RunSession(object(), "mine"):  # type: ignore[arg-type]
        try:
            raise began
        finally:
            raise ConnectionRefusedError(111, "Connection refused")


def test_what_put_in_order_fails_with_hides_neither_an_interrupt_nor_what_the_jvm_ended_with() -> None:
    with pytest.raises(KeyboardInterrupt):
        run_that_is_not_left_in_order(KeyboardInterrupt())
    with pytest.raises(EnvironmentFaultError, match="JVM ended"):
        run_that_is_not_left_in_order(lost("no answer"))


def test_other_faults_of_a_run_stay_what_they_are() -> None:
    for fault in (LakeError("torn"), ValueError("odd"), FileNotFoundError(2, "No such file")):
        assert cause_of(fault) is fault


def py4j_says(logger: logging.Logger) -> None:
    """As py4j does within a call: by the root logger, from a file of its own."""
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        source = compile(
            "log.exception('KeyboardInterrupt while sending command.')", "/lib/py4j/java_gateway.py", "exec"
        )
        exec(source, {"log": logger})


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
