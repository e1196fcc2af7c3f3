"""A server on loopback for the tests of lakes in an object store, with the S3 API.

`make test` runs LocalBucket, a package of pure Python that links each object into place: a put-if-absent is one there
too. `make test-long` runs MinIO, which it builds.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from kraftlake.runtime.free_ports import free_ports

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "kraftlake" / "minio"
MODULE = "github.com/minio/minio@latest"
KEY = "kraftlake-tests"
BUCKET = "lakes"
CARELESS = "careless"
"""A bucket of LocalBucket in which a put-if-absent overwrites."""
LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
_START_SECONDS = 240
_BUILD_SECONDS = 1_800  # three minutes on two idle cores, after a download of some hundred megabytes


def minio_binary() -> Path:
    """MinIO, from the cache or the PATH; else built, which needs Go and takes some minutes: once, for all processes."""
    found = CACHE / "minio"
    if not found.exists() and (on_path := shutil.which("minio")):
        return Path(on_path)
    CACHE.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (CACHE / ".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return found if found.exists() else build_minio(["go", "install", MODULE], CACHE)


def build_minio(command: Sequence[str], cache: Path, seconds: float = _BUILD_SECONDS) -> Path:
    """Run what installs the server into $GOBIN, beside the cache, and move it there when it is whole.

    Raises RuntimeError with the last that the build said when it fails, takes longer, or leaves no server.
    """
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".building-") as building:
        built = Path(building) / "minio"
        try:
            with (Path(building) / "said").open("w+b") as said:
                environment = {**os.environ, "GOBIN": building}
                subprocess.run(command, env=environment, check=True, cwd="/", timeout=seconds, stdout=said, stderr=said)
            built.replace(cache / "minio")
        except (OSError, subprocess.SubprocessError) as fault:
            last = (Path(building) / "said").read_text(errors="replace")[-2000:]
            raise RuntimeError(
                f"Building MinIO by `{' '.join(command)}` failed: {fault}. What Go has compiled is kept, so the next "
                f"try goes on from there; a server named minio on the PATH, or in {cache}, is used without building. "
                f"It said last: {last}"
            ) from fault
    return cache / "minio"


def server_command(data: Path, port: int) -> list[str | Path]:
    """What serves the buckets in the folder `data`."""
    if LONG:
        return [minio_binary(), "server", "--quiet", "--address", f"127.0.0.1:{port}", data]
    return [sys.executable, "-m", "tests.metadata_log.s3_server", data, str(port)]


@contextmanager
def running_server(folder: Path) -> Iterator[dict[str, str]]:
    """A server with two buckets; gives the environment by which lakes in it are reached."""
    for bucket in (BUCKET, CARELESS):
        (folder / "data" / bucket).mkdir(parents=True)
    (port,) = free_ports(1)
    environment = {"MINIO_ROOT_USER": KEY, "MINIO_ROOT_PASSWORD": KEY, "MINIO_BROWSER": "off", "HOME": str(folder)}
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            server_command(folder / "data", port),
            env={**os.environ, **environment},
            cwd=Path(__file__).parents[2],
            stdout=log,
            stderr=log,
        )
    try:
        _wait(port, server)
        yield {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": KEY,
            "AWS_REGION": "us-east-1",
        }
    finally:
        server.terminate()
        server.wait()


@pytest.fixture(scope="session")
def object_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The one server of this process: its address is fixed with the first request to a bucket."""
    with running_server(tmp_path_factory.mktemp("object-store")) as environment:
        yield environment


@pytest.fixture(scope="module")
def server(object_store: dict[str, str]) -> Iterator[dict[str, str]]:
    """The environment by which lakes in a store are reached, and this process in it while a module's tests run."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in object_store.items():
            patch.setenv(name, value)
        yield object_store


def _wait(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        assert server.poll() is None, "the server ended: is what the extra dev names installed?"
        assert time.monotonic() < deadline, "the server does not listen"
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            time.sleep(0.05)
