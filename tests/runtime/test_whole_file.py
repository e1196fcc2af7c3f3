"""Files that are written whole: who may read them, and what is left where they can't be written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftlake.runtime.errors import EnvironmentFaultError
from kraftlake.runtime.whole_file import write_readable, write_whole


@pytest.fixture(autouse=True)
def _umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_file_to_pass_on_is_as_any_new_file_or_as_the_one_that_it_replaces(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert write_readable(page, [b"one", b"two"]) == 6
    assert mode_of(page) == 0o640
    for mode in (0o604, 0o600, 0o444):
        page.chmod(mode)
        write_readable(page, [b"again"])
        assert (page.read_bytes(), mode_of(page)) == (b"again", mode)
    assert os.umask(0o027) == 0o027
    write_whole(page, [b"secret"])
    assert mode_of(page) == 0o600


def test_where_it_cannot_be_written_the_target_is_named(tmp_path: Path) -> None:
    def full() -> Iterator[bytes]:
        yield b"half"
        raise OSError(28, "No space left on device")

    page = tmp_path / "page.html"
    with pytest.raises(EnvironmentFaultError, match=r"/page\.html can't be written: No space left on device\.$"):
        write_readable(page, full())
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(EnvironmentFaultError, match=r"/gone/page\.html can't be written: No such file or directory\.$"):
        write_readable(tmp_path / "gone" / "page.html", [b"x"])
