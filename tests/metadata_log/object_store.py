"""A MinIO server on loopback for the tests of lakes in an object store, and the binary that `make test-long` builds."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "kraftlake" / "minio"
MODULE = "github.com/minio/minio@latest"
KEY = "kraftlake-tests"
BUCKET = "lakes"
LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
_START_SECONDS = 60


def minio_binary() -> Path | None:
    """The server, from the cache or the path; built first (with Go, some minutes) in the long profile only."""
    found = CACHE / "minio"
    if found.exists():
        return found
    if on_path := shutil.which("minio"):
        return Path(on_path)
    if not (LONG and shutil.which("go")):
        return None
    CACHE.mkdir(mode=0o700, parents=True, exist_ok=True)
    subprocess.run(["go", "install", MODULE], env={**os.environ, "GOBIN": str(CACHE)}, check=True, cwd="/")
    return found


@contextmanager
def running_minio(binary: Path, folder: Path) -> Iterator[dict[str, str]]:
    """A server with one bucket; gives the environment by which lakes in it are reached."""
    (folder / "data" / BUCKET).mkdir(parents=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {"MINIO_ROOT_USER": KEY, "MINIO_ROOT_PASSWORD": KEY, "MINIO_BROWSER": "off", "HOME": str(folder)}
    with (folder / "minio.log").open("wb") as log:
        server = subprocess.Popen(
            [binary, "server", "--quiet", "--address", f"127.0.0.1:{port}", folder / "data"],
            env={**os.environ, **environment},
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


def _wait(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        assert server.poll() is None, "MinIO ended"
        assert time.monotonic() < deadline, "MinIO doesn't listen"
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            time.sleep(0.05)
