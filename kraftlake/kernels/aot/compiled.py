"""Functions that run as machine code: compiled once a machine, loaded without numba ever after."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, TypeVar

from kraftlake.kernels.aot.arguments import Flattened, flatten
from kraftlake.kernels.aot.code_cache import LoadedCode, find_code
from kraftlake.runtime.errors import EnvironmentFaultError

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """`function` as machine code for the types that it is called with, releasing the GIL.

    It takes ints, C-contiguous numpy arrays and named tuples of these, `Flattened` or not, and gives nothing, a number
    or some of them. It must neither allocate nor raise. The code is found in the user's cache, or compiled (numba) at
    the first call.
    """
    made: Any = Kernel(function, inline=False)
    return made  # type: ignore[no-any-return]


def inlined(function: F) -> F:
    """As `compiled`, put into each compiled function that calls it; called by Python it runs as Python."""
    made: Any = Kernel(function, inline=True)
    return made  # type: ignore[no-any-return]


class Kernel:
    """A function and its machine code, by the types of arguments that it was called with in this process."""

    def __init__(self, function: Callable[..., Any], *, inline: bool) -> None:
        update_wrapper(self, function)
        self.function = function
        self.inline = inline
        self._codes: dict[str, LoadedCode] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Run it. Raises TypeError for arguments of other types than `compiled` names.

        EnvironmentFaultError where the code is not in the cache and can't be compiled.
        """
        if self.inline:  # of a kernel that runs as Python
            return self.function(*arguments)
        types: list[str] = []
        numbers: list[int] = []
        flatten(arguments, types, numbers)
        key = "".join(types)
        code = self._codes.get(key)
        if code is None:
            code = self._codes[key] = self._find(key, arguments)
        return code(numbers)

    def _find(self, key: str, arguments: tuple[Any, ...]) -> LoadedCode:
        def compile_() -> tuple[bytes, str]:
            try:
                from kraftlake.kernels.aot.compiler import compile_kernel

                plain = [each.value if isinstance(each, Flattened) else each for each in arguments]
                return compile_kernel(self, tuple(plain))
            except Exception as fault:  # an installation can be broken in any way
                raise EnvironmentFaultError(
                    f"numba can't compile {self.function.__name__} ({fault}): install it anew, or uninstall it to do "
                    "without compiled code."
                ) from fault

        return find_code(f"{self.function.__module__}.{self.function.__name__}", key, compile_)

    @property
    def _numba_type_(self) -> Any:
        """What numba asks a global of a compiled function for."""
        from kraftlake.kernels.aot.compiler import type_of_kernel

        return type_of_kernel(self)


def run(kernel: Any, as_compiled: bool, *arguments: Any) -> Any:
    """Call a compiled function, or else the Python function that it is made of: for little work, or without numba."""
    return kernel(*arguments) if as_compiled else kernel.function(*arguments)


class Instruction:
    """An instruction of some processors, for compiled functions to call: a 64-bit number of two others.

    `name` is what LLVM calls it, `feature` what it calls the ability. Where the processor lacks that, `otherwise`, a
    function that is `inlined`, is called instead.
    """

    def __init__(self, name: str, *, feature: str, otherwise: Any) -> None:
        self.name = name
        self.feature = feature
        self.otherwise: Kernel = otherwise

    @property
    def _numba_type_(self) -> Any:
        """What numba asks a global of a compiled function for."""
        from kraftlake.kernels.aot.compiler import type_of_instruction

        return type_of_instruction(self)


@compiled
def probe(number: int) -> int:
    """Gives `number`: whether compiled code works is found out with it."""
    return number
