"""The garbage collector rests while a module is imported, and is afterwards what it was before."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftlake.runtime.whole_import import import_whole

NAME = "a_module_that_tells_whether_garbage_is_collected"


@pytest.fixture(params=[True, False], ids=["collects", "does not collect"])
def collects(request: pytest.FixtureRequest) -> Iterator[bool]:
    before = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if before else gc.disable)()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / f"{NAME}.py"
    sys.modules.pop(NAME, None)


def test_nothing_is_collected_during_an_import(module: Path, collects: bool) -> None:
    module.write_text("import gc\nCOLLECTS = gc.isenabled()\n", "ascii")
    assert import_whole(NAME).COLLECTS is False
    assert gc.isenabled() is collects


def test_an_import_that_fails_leaves_the_collector_as_it_was(module: Path, collects: bool) -> None:
    module.write_text("raise ImportError('on purpose')\n", "ascii")
    with pytest.raises(ImportError, match="on purpose"):
        import_whole(NAME)
    assert gc.isenabled() is collects
