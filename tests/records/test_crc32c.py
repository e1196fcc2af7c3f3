"""The checksum is the package's, got without what the package imports beside it."""

from __future__ import annotations

import subprocess
import sys

import crc32c as package
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.records import crc32c


@given(st.binary(), st.binary())
def test_it_is_the_packages_checksum(head: bytes, rest: bytes) -> None:
    whole = crc32c.crc32c(rest, crc32c.crc32c(memoryview(head)))
    assert whole == package.crc32c(head + rest)


def test_it_does_not_import_the_package_around_it() -> None:
    code = (
        "import sys; from kraftlake.records.crc32c import crc32c; print(crc32c(b'123456789'), 'crc32c' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{0xE3069283} False\n"


def test_where_the_compiled_module_lies_elsewhere_the_package_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crc32c.PathFinder, "find_spec", lambda *_: None)
    assert crc32c._compiled_alone() is None
    assert crc32c._of_the_package() is package.crc32c
