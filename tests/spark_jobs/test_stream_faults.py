"""What Spark says of a failed run, in one sentence."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JNetworkError

from kraftlake.spark_jobs.stream_faults import first_words, worded

IN_A_WORKER = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/spark/python/lib/pyspark.zip/pyspark/serializers.py", line 454, in loads
    return cloudpickle.loads(obj, encoding=encoding)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
{raised}
"""
FAILED_STAGE = """An error occurred while calling o81.count.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent \
failure: Lost task 0.3 in stage 1.0 (TID 7) (10.0.0.7 executor 0): {raised}
\tat java.base/java.lang.Thread.run(Thread.java:840)

Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:3122)
Caused by: {raised}
\t... 1 more
"""
BY_JAVA = 'java.io.IOException: Cannot run program "./environment/bin/python": error=2, No such file or directory'


def test_a_jvm_that_is_gone_is_reported_in_words_for_people() -> None:
    assert "killed, or out of memory" in str(worded(Py4JNetworkError("Error while sending or receiving")))


def test_what_spark_says_begins_behind_the_line_that_names_the_call() -> None:
    said = "An error occurred while calling None.SparkSession.\n: java.lang.IllegalStateException: stopped\nat there"
    assert first_words(ValueError(said)) == "java.lang.IllegalStateException: stopped"
    assert str(worded(ValueError(said))) == "Spark failed: java.lang.IllegalStateException: stopped"
    assert first_words(ValueError("[TABLE_NOT_FOUND] no table\nSQLSTATE")) == "[TABLE_NOT_FOUND] no table"
    assert first_words(ValueError()) == "ValueError"


@pytest.mark.parametrize("text", [IN_A_WORKER, FAILED_STAGE.replace("{raised}", IN_A_WORKER)])
def test_what_python_raised_in_a_worker_is_the_reason(text: str) -> None:
    missing = "ModuleNotFoundError: No module named 'pyarrow'"
    assert str(worded(ValueError(text.format(raised=missing)))) == f"Spark failed: {missing}"
    ours = "kraftlake.runtime.errors.EnvironmentFaultError: the sentence: with the way out"
    assert str(worded(ValueError(text.format(raised=ours)))) == "the sentence: with the way out"


def test_the_last_of_chained_errors_is_the_reason() -> None:
    chained = IN_A_WORKER.format(raised="OSError: first") + "\nDuring handling of the above exception, another:\n\n"
    assert (
        str(worded(ValueError(chained + IN_A_WORKER.format(raised="KeyError: 'b'")))) == "Spark failed: KeyError: 'b'"
    )


@pytest.mark.parametrize("text", [f": {BY_JAVA}", FAILED_STAGE.format(raised=BY_JAVA)], ids=["driver", "executor"])
def test_a_python_that_is_not_there_is_named(text: str) -> None:
    assert str(worded(ValueError(text))).startswith("Spark can't run ./environment/bin/python: PYSPARK_PYTHON has to")


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        (
            "/usr/bin/python3: Error while finding module specification for 'kraftlake.spark_jobs.worker_daemon' "
            "(ModuleNotFoundError: No module named 'kraftlake')",
            "kraftlake is not installed in the Python of Spark's workers: install the same release there, and name "
            "that Python as PYSPARK_PYTHON",
        ),
        (
            'Traceback (most recent call last):\n    File "daemon.py", line 1, in main\n  '
            "ModuleNotFoundError: No module named 'pyarrow'",
            "Spark failed: ModuleNotFoundError: No module named 'pyarrow'",
        ),
        ("kraftlake.runtime.errors.EnvironmentFaultError: install it again", "install it again"),
    ],
)
def test_the_reason_why_the_daemon_of_workers_does_not_start_is_what_it_printed(printed: str, reason: str) -> None:
    raised = f"org.apache.spark.SparkException: \nError from python worker:\n  {printed}\nPYTHONPATH was:\n  /spark.zip"
    assert str(worded(ValueError(FAILED_STAGE.format(raised=raised)))) == reason


def test_a_worker_that_was_killed_is_reported_in_words_for_people() -> None:
    said = FAILED_STAGE.format(raised="org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)")
    assert "killed, or out of memory" in str(worded(ValueError(said)))


def test_a_python_that_ends_at_its_start_is_reported_in_words_for_people() -> None:
    said = "[STREAM_FAILED] Query terminated with exception: Python worker failed to connect back. SQLSTATE: XXKST"
    assert "PYSPARK_PYTHON has to be a Python that has kraftlake" in str(worded(ValueError(said)))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("ModuleNotFoundError: No module named 'kraftlake'", "kraftlake is not installed in the Python of"),
        ("ModuleNotFoundError: No module named 'kraftlake.spark_jobs.tasks'", "kraftlake is of another release in"),
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in driver: 3.11, PySpark "
            "cannot run with different minor versions.\nPlease check environment variables",
            "Python is 3.12 in Spark's workers and 3.11 where the job was started",
        ),
        ('status = StatusCode.UNAVAILABLE details = "Socket closed"', "the server of Spark Connect has ended or is"),
    ],
)
def test_what_workers_and_servers_lack_is_one_sentence(said: str, words: str) -> None:
    sentence = str(worded(RuntimeError(f"Traceback (most recent call last):\n  File x\n{said}\n")))
    assert sentence.startswith(words)
    assert "\n" not in sentence
