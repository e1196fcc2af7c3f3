"""From a function to an object file. Imports numba, which nothing else does."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import llvmlite.binding as llvm
import numba
import numpy as np
from llvmlite import ir
from numba.core import types as numba_types
from numba.core.cgutils import get_or_insert_function
from numba.core.compiler_lock import global_compiler_lock
from numba.core.typing.templates import make_intrinsic_template
from numba.np.arrayobj import make_array, populate_array

from kraftlake.kernels.aot.code_cache import ENTRY, RESULTS
from kraftlake.kernels.aot.numba_target import Library, dispatcher_of

if TYPE_CHECKING:
    from kraftlake.kernels.aot.compiled import Instruction, Kernel

KNOWN_TO_ALL: Final = frozenset({"memcpy", "memmove", "memset", "memcmp"})
"""What code may call outside of itself: the C library has it in every process."""

types: Any = numba_types  # most of its names are made at import
_WORD = ir.IntType(64)


def compile_kernel(kernel: Kernel, arguments: tuple[Any, ...]) -> tuple[bytes, str]:
    """The object file of a kernel for arguments of these types, and the letters of its results.

    Raises TypeError for a function that gives what is no number, or calls what is not in the object file: numba's
    run-time, where it allocates.
    """
    with global_compiler_lock:
        dispatcher = _dispatcher(kernel)
        signature = tuple(_type_of(argument) for argument in arguments)
        dispatcher.compile(signature)
        return _object_file(dispatcher.overloads[signature])


def type_of_kernel(kernel: Kernel) -> Any:
    """The type of a kernel that another one calls."""
    return types.Dispatcher(_dispatcher(kernel))


@cache
def type_of_instruction(instruction: Instruction) -> Any:
    """The type of an instruction that a kernel calls, or of the kernel that replaces it on this processor."""
    if not llvm.get_host_cpu_features().get(instruction.feature, False):
        return type_of_kernel(instruction.otherwise)

    def define(_: Any, _one: Any, _two: Any) -> Any:
        return types.uint64(types.uint64, types.uint64), emit

    def emit(_: Any, builder: Any, __: Any, numbers: Any) -> Any:
        function = ir.FunctionType(_WORD, [_WORD, _WORD])
        return builder.call(get_or_insert_function(builder.module, function, instruction.name), numbers)

    return types.Function(make_intrinsic_template(instruction, define, instruction.name))


@cache
def _dispatcher(kernel: Kernel) -> Any:
    options = {
        "nopython": True,
        "_nrt": False,  # arrays are the caller's: nothing is counted, nothing allocated
        "error_model": "numpy",
        "forceinline": kernel.inline,
        "no_cpython_wrapper": True,
        "no_cfunc_wrapper": True,
    }
    return dispatcher_of(kernel.function, options)


def _type_of(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):  # those that are read-only, too: one code for both
        return types.Array(numba.from_dtype(argument.dtype), argument.ndim, "C")
    if isinstance(argument, tuple):
        return types.NamedTuple([_type_of(field) for field in argument], type(argument))
    return types.int64


def _object_file(compiled: Any) -> tuple[bytes, str]:
    """The code of `compiled` (numba's CompileResult), entered by a function that takes nothing but numbers."""
    context, signature = compiled.target_context, compiled.signature
    library = Library(context.codegen())
    module = library.create_ir_module(ENTRY)
    entry = ir.Function(module, ir.FunctionType(ir.IntType(32), [_WORD.as_pointer()]), ENTRY)
    builder = ir.IRBuilder(entry.append_basic_block())
    numbers = _Numbers(context, builder, entry.args[0])
    values = [numbers.take(argument) for argument in signature.args]
    function = context.declare_function(module, compiled.fndesc)
    status, result = context.call_conv.call_function(builder, function, signature.return_type, signature.args, values)
    results = _store_results(builder, signature.return_type, result, entry.args[0])
    builder.ret(builder.select(status.is_ok, ir.IntType(32)(0), ir.IntType(32)(1)))
    library.add_ir_module(module)
    library.add_linking_library(compiled.library)
    optimized = library.optimized_module()
    missing = {
        function.name
        for function in optimized.functions
        if function.is_declaration and not function.name.startswith("llvm.")
    } - KNOWN_TO_ALL
    if missing:
        raise TypeError(f"{compiled.fndesc.qualname} calls {', '.join(sorted(missing))}")
    code: bytes = context.codegen()._tm.emit_object(optimized)
    return code, results


class _Numbers:
    """Makes the arguments of a function again from the numbers that `flatten` made of them."""

    def __init__(self, context: Any, builder: Any, numbers: Any) -> None:
        self._context = context
        self._builder = builder
        self._numbers = numbers
        self._at = 0

    def take(self, kind: Any) -> Any:
        """The next argument."""
        if isinstance(kind, types.Array):
            return self._array(kind)
        if isinstance(kind, types.NamedTuple):
            return self._context.make_tuple(self._builder, kind, [self.take(field) for field in kind.types])
        return self._number()

    def _number(self) -> Any:
        value = self._builder.load(self._builder.gep(self._numbers, [_WORD(self._at)]))
        self._at += 1
        return value

    def _array(self, kind: Any) -> Any:
        builder = self._builder
        array = make_array(kind)(self._context, builder)
        address = builder.inttoptr(self._number(), array.data.type)
        shape = [self._number() for _ in range(kind.ndim)]
        item = _WORD(kind.dtype.bitwidth // 8)
        strides = [item]
        for length in reversed(shape[1:]):
            strides.insert(0, builder.mul(strides[0], length))
        populate_array(array, data=address, shape=shape, strides=strides, itemsize=item, meminfo=None)
        return array._getvalue()


def _store_results(builder: Any, kind: Any, result: Any, numbers: Any) -> str:
    """Put the results into the first of the `numbers`, and give their letters."""
    if isinstance(kind, types.NoneType):
        return ""
    several = isinstance(kind, types.BaseTuple)
    kinds = list(kind.types) if several else [kind]
    letters = ""
    for place, each in enumerate(kinds):
        value = builder.extract_value(result, place) if several else result
        if isinstance(each, types.Boolean):
            letters += "b"
        elif isinstance(each, types.Integer) and place < RESULTS:
            letters += "n" if each.signed else "u"
        else:
            raise TypeError(f"compiled code gives no {kind}")
        if value.type.width < _WORD.width:
            value = builder.sext(value, _WORD) if letters[-1] == "n" else builder.zext(value, _WORD)
        builder.store(value, builder.gep(numbers, [_WORD(place)]))
    return letters
