"""Compiled functions that numba can't make any more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numba
import pytest

from kraftlake import kernels
from kraftlake.kernels import compiled


def breaking(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], list[str]]]:
    """Gives what makes a kernel one that numba can't compile, with a list that tells how often it was asked to."""
    monkeypatch.setattr(kernels, "_given_up", [])
    find = compiled.find_code

    def break_it(kernel: Any) -> list[str]:
        asked: list[str] = []
        monkeypatch.setattr(kernel, "_codes", {})
        name = f"{kernel.function.__module__}.{kernel.function.__name__}"

        def compile_kernel(*_: Any) -> Any:
            asked.append(name)
            raise numba.TypingError("no such feature")

        def find_code(of: str, types: str, compile_: Any) -> Any:
            return compile_() if of == name else find(of, types, compile_)

        monkeypatch.setattr("kraftlake.kernels.compiler.compile_kernel", compile_kernel)
        monkeypatch.setattr(compiled, "find_code", find_code)
        return asked

    kernels.available.cache_clear()
    yield break_it
    kernels.available.cache_clear()
