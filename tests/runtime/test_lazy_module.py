"""A module that is imported at its first use."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kraftlake.runtime.lazy_module import LazyModule


def test_a_lazy_module_has_the_attributes_of_the_module() -> None:
    import colorsys

    lazy = LazyModule("colorsys")
    assert lazy.rgb_to_hsv is colorsys.rgb_to_hsv
    assert vars(lazy)["rgb_to_hsv"] is colorsys.rgb_to_hsv, "it is asked for once"
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = lazy.no_such_thing


def test_a_name_is_imported_at_its_first_use() -> None:
    script = (
        "import sys; from kraftlake.runtime.lazy_module import LazyModule\n"
        "lazy = LazyModule('colorsys'); assert 'colorsys' not in sys.modules, repr(lazy)\n"
        "lazy.rgb_to_hsv; assert 'colorsys' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
