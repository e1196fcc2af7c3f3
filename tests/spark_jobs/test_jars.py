from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import zipfile
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import attrs
import pytest
from delta import configure_spark_with_delta_pip
from pyspark.sql import SparkSession

from kraftlake.runtime.errors import EnvironmentFaultError
from kraftlake.spark_jobs import jars
from kraftlake.spark_jobs.jars import jars_are_cached, spark_jars
from tests.process_sessions import kill_session

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("KRAFTLAKE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def resolved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """A resolver that answers with two jars, one of which Spark ships itself; the list says what it was asked."""
    asked: list[list[str]] = []

    def resolve(packages: list[str], scratch: Path) -> list[Path]:
        assert packages[0].startswith("io.delta:delta-spark_")
        asked.append(packages[1:])
        jars = [scratch / "io.delta_delta-storage-4.4.0.jar", scratch / "org.apache.logging.log4j_log4j-core-2.0.jar"]
        for jar in jars:
            jar.write_bytes(b"jar of " + jar.name.encode())
        return jars

    monkeypatch.setattr(jars, "resolve_jars", resolve)
    return asked


def test_the_resolver_is_asked_once_and_what_spark_ships_is_left_out(cache: Path, resolved: list[list[str]]) -> None:
    assert not jars_are_cached()
    (jar,) = spark_jars()
    assert jar.name == "io.delta_delta-storage-4.4.0.jar"
    assert jar.is_relative_to(cache)
    assert jars_are_cached()
    assert spark_jars() == (jar,)
    assert resolved == [[]]


def test_other_packages_have_a_folder_of_their_own(cache: Path, resolved: list[list[str]]) -> None:
    assert spark_jars(["a:b:1"])[0].parent != spark_jars()[0].parent
    assert resolved == [["a:b:1"], []]


def test_a_folder_that_lost_bytes_is_filled_again(cache: Path, resolved: list[list[str]]) -> None:
    (jar,) = spark_jars()
    jar.write_bytes(b"")
    assert not jars_are_cached()
    (again,) = spark_jars()
    assert again.read_bytes().startswith(b"jar of io.delta")
    assert len(resolved) == 2
    assert not [entry for entry in jar.parent.parent.iterdir() if entry.name.startswith(".filling")]


@pytest.mark.usefixtures("cache")
def test_a_resolver_that_fails_is_one_sentence_with_its_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text(
        "#!/bin/sh\necho ':: unresolved dependency: io.delta#x;1: not found' >&2\nexit 1\n"
    )
    (home / "bin" / "java").chmod(0o755)
    (home / "release").write_text('JAVA_VERSION="17"\n')
    monkeypatch.setenv("JAVA_HOME", str(home))
    with pytest.raises(EnvironmentFaultError, match=r"can't get io\.delta:x:1 \(.*not found\): .*needs Maven Central"):
        spark_jars()


def test_a_cache_that_cannot_be_made_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KRAFTLAKE_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(EnvironmentFaultError, match="set KRAFTLAKE_CACHE to a folder of yours"):
        spark_jars()


def test_a_cache_that_cannot_take_jars_is_named(cache: Path, resolved: list[list[str]]) -> None:
    cache.mkdir()
    (cache / "jars").write_text("")
    with pytest.raises(EnvironmentFaultError, match=f"the jars can't be kept in {cache}/jars: "):
        spark_jars()


def test_what_a_killed_process_left_is_removed_by_the_next_that_resolves(
    cache: Path, resolved: list[list[str]]
) -> None:
    (cache / "jars" / ".filling-killed" / "resolving").mkdir(parents=True)
    (jar,) = spark_jars()
    assert {entry.name for entry in jar.parent.parent.iterdir()} == {".lock", jar.parent.name}


def test_a_list_that_is_not_ours_is_no_cache(cache: Path, resolved: list[list[str]]) -> None:
    (jar,) = spark_jars()
    (jar.parent / "jars.json").write_text(json.dumps(["a list"]))
    assert not jars_are_cached()


@attrs.define
class Repository:
    """A Maven repository on loopback, with Delta Lake as a small jar that needs the one of `org.example:needed:1`."""

    folder: Path
    url: str = ""
    asked: Counter[str] = attrs.field(factory=Counter)
    cut_short: set[str] = attrs.field(factory=set)
    """Names of files that are sent by half, once each."""
    held: set[str] = attrs.field(factory=set)
    """Names of files that are not sent, once each: the server waits until the client is gone."""
    waits: threading.Event = attrs.field(factory=threading.Event)

    def publish(self, artifact: str, needs: str = "") -> None:
        group, name, version = artifact.split(":")
        place = self.folder / group.replace(".", "/") / name / version
        place.mkdir(parents=True)
        (place / f"{name}-{version}.pom").write_text(pom(artifact, needs))
        with zipfile.ZipFile(place / f"{name}-{version}.jar", "w") as jar:
            jar.writestr("content", artifact * 1000)
        published = "".join(f"<version>{found.name}</version>" for found in place.parent.iterdir() if found.is_dir())
        (place.parent / "maven-metadata.xml").write_text(
            f"<metadata><versioning><versions>{published}</versions></versioning></metadata>"
        )


def pom(artifact: str, needs: str = "") -> str:
    def coordinates(names: str) -> str:
        tags = zip(("groupId", "artifactId", "version"), names.split(":"), strict=True)
        return "".join(f"<{tag}>{value}</{tag}>" for tag, value in tags)

    dependencies = f"<dependencies><dependency>{coordinates(needs)}</dependency></dependencies>" if needs else ""
    return f"<project><modelVersion>4.0.0</modelVersion>{coordinates(artifact)}{dependencies}</project>"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    """The resolver's JVM is to start soon."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", QUICK)
    found = Repository(tmp_path / "repository")

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.answer(send=False)

        def do_GET(self) -> None:
            self.answer(send=True)

        def answer(self, *, send: bool) -> None:
            file = found.folder / self.path.lstrip("/")
            if not file.is_file():
                self.send_error(404)
                return
            content = file.read_bytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if send:
                found.asked[file.name] += 1
                if file.name in found.held:
                    found.held.discard(file.name)
                    found.waits.set()
                    assert self.rfile.read(1) == b"", "the client is gone"
                    return
                cut = file.name in found.cut_short
                found.cut_short.discard(file.name)
                self.wfile.write(content[: len(content) // 2] if cut else content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    delta = configure_spark_with_delta_pip(SparkSession.builder)._options["spark.jars.packages"]
    found.publish(delta, needs="org.example:needed:1")
    found.publish("org.example:needed:1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        found.url = f"http://127.0.0.1:{server.server_port}/"
        yield found
        server.shutdown()


def machine(home: Path, repository: Repository) -> dict[str, str]:
    """The environment of a user whose home folder is `home`, for Python and for Java."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith(("_CACHE", "_CACHE_HOME"))}
    java = {"JAVA_TOOL_OPTIONS": f"-Duser.home={home} {QUICK}", "DEFAULT_ARTIFACT_REPOSITORY": repository.url}
    return environment | java | {"HOME": str(home)}


def spoil_local_maven_repository(home: Path) -> None:
    """With a POM without its jar, as tools leave it that only read POMs."""
    place = home / ".m2" / "repository" / "org" / "example" / "needed" / "1"
    place.mkdir(parents=True)
    (place / "needed-1.pom").write_text(pom("org.example:needed:1"))


def first_process(home: Path, repository: Repository) -> subprocess.Popen[str]:
    program = "from kraftlake.spark_jobs.jars import spark_jars; print(*(jar.name for jar in spark_jars()))"
    command, pipe = [sys.executable, "-c", program], subprocess.PIPE
    return subprocess.Popen(
        command, env=machine(home, repository), stdout=pipe, stderr=pipe, text=True, start_new_session=True
    )


@pytest.mark.spark
def test_processes_that_are_first_together_on_a_machine_resolve_once_though_it_was_cut_short(
    tmp_path: Path, repository: Repository
) -> None:
    home = tmp_path / "home"
    spoil_local_maven_repository(home)
    repository.cut_short.add("needed-1.jar")
    for process in [first_process(home, repository), first_process(home, repository)]:
        printed, said = process.communicate()
        assert printed.split()[1:] == ["org.example_needed-1.jar"], said
    assert repository.asked["needed-1.jar"] == 2, "one was cut short"
    assert {path.name for path in home.iterdir()} == {".cache", ".m2"}
    (kept,) = (home / ".cache" / "kraftlake" / "jars").glob("*/org.example_needed-1.jar")
    assert zipfile.ZipFile(kept).testzip() is None


@pytest.mark.spark
@pytest.mark.skipif(not LONG, reason="KRAFTLAKE_TESTS=long: the quick run has above what a killed process leaves")
def test_where_a_process_was_killed_the_next_one_resolves(tmp_path: Path, repository: Repository) -> None:
    home = tmp_path / "home"
    repository.held.add("needed-1.jar")
    killed = first_process(home, repository)
    assert repository.waits.wait(120)
    (filling,) = (home / ".cache" / "kraftlake" / "jars").glob(".filling-*")
    other = first_process(home, repository)
    kill_session(killed.pid)
    killed.communicate()
    printed, said = other.communicate()
    assert printed.split()[1:] == ["org.example_needed-1.jar"], said
    assert {path.name for path in filling.parent.iterdir() if path.name.startswith(".")} == {".lock"}


@pytest.mark.spark
def test_an_artifact_that_cannot_be_had_is_named(
    tmp_path: Path, cache: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jars, "_TRIES", 1)
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", repository.url)
    (repository.folder / "org/example/needed/1/needed-1.jar").unlink()
    with pytest.raises(EnvironmentFaultError, match=r"can't get org\.example:needed:1 \("):
        spark_jars()
    assert [path.name for path in (cache / "jars").iterdir()] == [".lock"]


@pytest.mark.spark
def test_a_delta_without_jars_for_this_spark_names_the_newest_that_has_them(
    cache: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jars, "_TRIES", 1)
    monkeypatch.setattr(jars, "version", {"delta-spark": "4.4.9", "pyspark": "4.2.0"}.__getitem__)
    monkeypatch.setattr("importlib_metadata.version", lambda _: "4.4.9")
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", repository.url)
    artifact = jars._with_delta(())[0].removesuffix("4.4.9")
    for number in (2, 10, 4):
        repository.publish(f"{artifact}4.4.{number}")
    repository.publish(f"{artifact}4.5.0")
    with pytest.raises(
        EnvironmentFaultError,
        match=rf"^delta-spark 4\.4\.9 has no jars for Spark 4\.2\.0 \({artifact}4\.4\.9 is not found\): install "
        r"delta-spark 4\.4\.10, the newest of 4\.4 that has them$",
    ):
        spark_jars()
    assert [path.name for path in (cache / "jars").iterdir()] == [".lock"]
