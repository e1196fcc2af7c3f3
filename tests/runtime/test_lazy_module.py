"""A module that stands for another until it is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kraftlake.runtime.lazy_module import LazyModule


def test_what_a_lazy_module_gives_is_what_the_module_has() -> None:
    import colorsys

    lazy = LazyModule("colorsys")
    assert lazy.rgb_to_hsv is colorsys.rgb_to_hsv
    assert vars(lazy)["rgb_to_hsv"] is colorsys.rgb_to_hsv, "it is asked for once"
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = lazy.no_such_thing


def test_nothing_is_imported_before_it_is_asked_for() -> None:
    script = (
        "import sys; from kraftlake.runtime.lazy_module import LazyModule\n"
        "lazy = LazyModule('colorsys'); assert 'colorsys' not in sys.modules, repr(lazy)\n"
        "lazy.rgb_to_hsv; assert 'colorsys' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
