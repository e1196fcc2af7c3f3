"""numba's compiler without what calling its functions in this process takes: code is optimised and emitted once.

numba makes machine code of each function that another one calls, and then again of that one with those in it: some
fifty times for the loops here. These libraries keep what is called as it came from the front end.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher


class Library(JITCodeLibrary):  # type: ignore[misc]
    """The functions of a module, not optimised before `optimized_module` asks for it, and never run."""

    def __init__(self, codegen: Any) -> None:
        super().__init__(_NothingRuns(codegen), "kernel")

    def finalize(self) -> None:
        """Link in what was added."""
        for library in dict.fromkeys(self._linking_libraries):
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._final_module.verify()
        self._finalized = True

    def get_pointer_to_function(self, _: str) -> int:
        """No address: nothing runs."""
        return 0

    def optimized_module(self) -> Any:
        """The module with all that was linked into it, optimised as a whole."""
        self._ensure_finalized()
        self._optimize_final_module()
        return self._final_module


class _NothingRuns:
    """A code generator that sets nothing up for functions to be run."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, *_: Any) -> None:
        pass


class _Compiler(Compiler):  # type: ignore[misc]
    def __init__(self, typingctx: Any, targetctx: Any, _: Any, *rest: Any) -> None:
        super().__init__(typingctx, targetctx, Library(targetctx.codegen()), *rest)


def dispatcher_of(function: Any, options: dict[str, Any]) -> Any:
    """The function's numba dispatcher: other functions call it, and it compiles for types of arguments."""
    return CPUDispatcher(function, targetoptions=options, pipeline_class=_Compiler)
