"""A location in an object store, with the part of a disk path's interface that the lake needs.

obstore is imported on first use. Its threads don't survive a fork: start processes by spawn.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs

from kraftlake.runtime.errors import EnvironmentFaultError, UsageError
from kraftlake.runtime.extras import require

if TYPE_CHECKING:
    from obstore.store import ObjectStore

SCHEMES = ("s3",)
"""The schemes of URIs whose objects can hold a lake."""

_REQUEST_SECONDS = 20
_RETRIES = 3


def is_object_uri(place: object) -> bool:
    """Whether a place is in an object store."""
    return isinstance(place, ObjectPath) or str(place).startswith(tuple(f"{scheme}://" for scheme in SCHEMES))


@attrs.frozen
class ObjectPath:
    """An object, or the prefix that stands for a folder: `key` in the store `bucket` (as s3://name)."""

    bucket: str
    key: str = ""

    @classmethod
    def parse(cls, uri: str) -> ObjectPath:
        """Parse s3://bucket/prefix; raises UsageError for another form, EnvironmentFaultError without obstore."""
        scheme, _, rest = uri.partition("://")
        name, _, key = rest.partition("/")
        if scheme not in SCHEMES or not name:
            raise UsageError(f"{uri} is no place for a lake: give a folder, or s3://BUCKET/PREFIX.")
        require("obstore", "lakes in an object store")
        return cls(f"{scheme}://{name}", "/".join(part for part in key.split("/") if part))

    def __str__(self) -> str:
        return f"{self.bucket}/{self.key}" if self.key else self.bucket

    def __repr__(self) -> str:
        return f"ObjectPath({str(self)!r})"

    def __truediv__(self, name: str) -> ObjectPath:
        return ObjectPath(self.bucket, f"{self.key}/{name}" if self.key else name)

    @property
    def store(self) -> ObjectStore:
        """The store; its options (endpoint, region, keys) come from the environment."""
        return _store(self.bucket, os.getpid())

    @property
    def name(self) -> str:
        """The part after the last slash."""
        return self.key.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """The last dot of the name and the text after it, as on a disk."""
        dot = self.name.rfind(".")
        return self.name[dot:] if dot > 0 else ""

    @property
    def parent(self) -> ObjectPath:
        """The prefix before the last slash."""
        return ObjectPath(self.bucket, self.key.rpartition("/")[0])

    def read_bytes(self) -> bytes:
        """Read the whole object; raises FileNotFoundError, OSError if the store refuses."""
        with _requests(self) as obstore:
            return bytes(obstore.get(self.store, self.key).bytes())

    def put(self, data: bytes, *, create: bool) -> None:
        """Write the whole object; with `create`, raises FileExistsError if it exists."""
        with _requests(self) as obstore:
            obstore.put(self.store, self.key, data, mode="create" if create else "overwrite", use_multipart=False)

    def delete(self) -> None:
        """Delete the object; a missing one is no error."""
        with contextlib.suppress(FileNotFoundError), _requests(self) as obstore:
            obstore.delete(self.store, self.key)

    def exists(self) -> bool:
        """Whether an object of this name exists."""
        try:
            self.size()
        except FileNotFoundError:
            return False
        return True

    def size(self) -> int:
        """The object's length in bytes."""
        return int(self._head()["size"])

    def modified_ms(self) -> int:
        """The time at which the object was last written, in epoch ms; raises FileNotFoundError, OSError."""
        return int(self._head()["last_modified"].timestamp() * 1000)

    def _head(self) -> Any:
        with _requests(self) as obstore:
            return obstore.head(self.store, self.key)

    def is_dir(self) -> bool:
        """Whether any object lies below this prefix."""
        return next(self.walk(), None) is not None

    def iterdir(self, *, after: str = "") -> Iterator[ObjectPath]:
        """The objects directly below this prefix whose names sort after `after`, in order; no prefixes."""
        for path in self.walk(after=after):
            if path.parent == self:
                yield path

    def folders(self) -> Iterator[ObjectPath]:
        """The prefixes directly below this one."""
        with _requests(self) as obstore:
            below = obstore.list_with_delimiter(self.store, f"{self.key}/" if self.key else None)
            for prefix in below["common_prefixes"]:
                yield ObjectPath(self.bucket, prefix.rstrip("/"))

    def walk(self, *, after: str = "") -> Iterator[ObjectPath]:
        """Yield all objects below this prefix whose names, relative to it, sort after `after`."""
        prefix = f"{self.key}/" if self.key else ""
        with _requests(self) as obstore:
            for chunk in obstore.list(self.store, prefix or None, offset=f"{prefix}{after}" if after else None):
                for entry in chunk:
                    yield ObjectPath(self.bucket, entry["path"])

    def open(self, mode: str = "rb") -> io.RawIOBase:
        """Open the object as a file that reads only the requested ranges."""
        assert mode == "rb", "an object is read as bytes"
        return _ObjectFile(self)


class _ObjectFile(io.RawIOBase):
    def __init__(self, path: ObjectPath) -> None:
        self._path = path
        self._size = path.size()
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = start + offset
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        left = max(0, self._size - self._position)
        size = left if size is None or size < 0 else min(size, left)
        if size == 0:
            return b""
        with _requests(self._path) as obstore:
            data = bytes(obstore.get_range(self._path.store, self._path.key, start=self._position, length=size))
        self._position += len(data)
        return data


@contextlib.contextmanager
def _requests(path: ObjectPath) -> Iterator[Any]:
    """Provide the module obstore; its errors become the OSErrors that a disk would raise."""
    import obstore
    from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, UnauthenticatedError

    try:
        yield obstore
    except (OSError, EnvironmentFaultError):
        raise
    except AlreadyExistsError as fault:
        raise FileExistsError(17, "there is such an object already", str(path)) from fault
    except (PermissionDeniedError, UnauthenticatedError) as fault:
        raise PermissionError(13, "the object store denies access", str(path)) from fault
    except BaseError as fault:
        # Without the request's address and the server's page, which is XML.
        reason = re.sub(r"Error performing .* - |: <\?xml.*", "", str(fault).strip().split("\n", 1)[0])
        raise OSError(5, f"the object store answers: {reason}", str(path)) from fault


@functools.cache
def _store(bucket: str, _process: int) -> ObjectStore:
    from obstore.store import S3Store

    return S3Store(
        bucket.partition("://")[2],
        client_options={"timeout": f"{_REQUEST_SECONDS}s", "allow_http": _allows_http()},
        retry_config={"max_retries": _RETRIES},
    )


def _allows_http() -> bool:
    """Whether the environment allows plain HTTP, or names an endpoint without TLS."""
    names = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT")
    endpoint = next((os.environ[name] for name in names if name in os.environ), "")
    return os.environ.get("AWS_ALLOW_HTTP", "").lower() == "true" or endpoint.startswith("http://127.0.0.1")
