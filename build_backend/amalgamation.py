"""One source of one extension module, made of the files in `kraftlake/kernels/`, for Cython.

Cython inlines a function where it is called only within one module, and the kernels are many small files. So their
functions go into one file, each file after those that it imports from, with four changes:

- An integer constant becomes its value, also one of a file that has constants alone, which Python imports, too; a
  file that takes many of another one names that file: `from kraftlake.kernels.replay import change_state as change`.
- A name of a C type or buffer (`kernels/language.py`) becomes Cython's words for it.
- A function marked `inlined` becomes a C function; one marked `compiled` becomes a C function and a Python function,
  which calls it without the GIL; one marked `allocating` stays as it is.
- A NamedTuple of buffers becomes an extension class with the same fields, made of the fields in their order.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

_LANGUAGE = "kraftlake.kernels.language"
_C_FUNCTION = ("cython.cfunc", "cython.nogil", "cython.exceptval(check=False)")
_C_CLASS = ("cython.final", "cython.cclass")
Names = dict[str, ast.expr]


def amalgamate(package: Path) -> str:
    """The source of the extension module from the folder `kraftlake`; the same for the same files.

    Raises SyntaxError for a file that is not written as the kernels are.
    """
    trees = {
        ".".join(["kraftlake", *path.relative_to(package).with_suffix("").parts]): ast.parse(path.read_text(), path)
        for path in sorted((package / "kernels").rglob("*.py"))
        if path.name != "__init__.py"
    }
    del trees["kraftlake.kernels.compiled"]  # stands for the extension itself
    known = {_LANGUAGE: _aliases(trees.pop(_LANGUAGE))}
    body: list[ast.stmt] = ast.parse("import cython").body
    for module in _in_order(trees):
        names: Names = dict(known[_LANGUAGE])
        modules: dict[str, Names] = {}
        for statement in trees[module].body:
            if isinstance(statement, ast.ImportFrom) and statement.module in known:
                names |= {name.name: known[statement.module][name.name] for name in statement.names}
            elif isinstance(statement, ast.ImportFrom):
                found = [(name, f"{statement.module}.{name.name}") for name in statement.names]
                modules |= {name.asname or name.name: known[path] for name, path in found if path in known}
        own, statements = _of_file(trees[module], module.rpartition(".")[2], names, modules)
        known[module] = own
        body += statements
    _check_unique(body)
    return ast.unparse(ast.fix_missing_locations(ast.Module(body, []))) + "\n"


def _aliases(language: ast.Module) -> Names:
    """What stands for a name of `language`; its marks stand for themselves."""
    found: Names = {}
    for statement in language.body:
        if isinstance(statement, ast.Assign):
            found[_name(statement.targets[0])] = statement.value
        elif isinstance(statement, ast.FunctionDef):
            found[statement.name] = ast.Name(statement.name, ast.Load())
    return found


def _in_order(trees: dict[str, ast.Module]) -> Iterator[str]:
    """The modules, each after the ones that it imports from."""
    done: set[str] = set()

    def visit(module: str) -> Iterator[str]:
        if module not in done:
            done.add(module)
            for statement in trees[module].body:
                if isinstance(statement, ast.ImportFrom):
                    for path in (statement.module, *(f"{statement.module}.{name.name}" for name in statement.names)):
                        if path in trees:
                            yield from visit(path)
            yield module

    for module in trees:
        yield from visit(module)


def _of_file(tree: ast.Module, stem: str, imported: Names, modules: dict[str, Names]) -> tuple[Names, list[ast.stmt]]:
    """What stands for the names that a file defines, and what the extension has of the file."""
    own: Names = {}
    kept: list[ast.FunctionDef | ast.ClassDef] = []
    statements: list[ast.stmt] = []
    for statement in tree.body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            own |= _constants(statement, {**imported, **own})
        elif isinstance(statement, ast.ClassDef):
            kept.append(statement)
            own[statement.name] = ast.Name(statement.name, ast.Load())
        elif isinstance(statement, ast.FunctionDef):
            kept.append(statement)
            own[statement.name] = ast.Name(_c_name(stem, statement.name), ast.Load())
        elif isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("cython.cimports"):
            statements.append(statement)
    for definition in kept:
        _Replaced({**imported, **own}, modules).generic_visit(definition)
        if isinstance(definition, ast.ClassDef):
            statements.append(_extension_class(definition))
        else:
            statements += _functions(definition, _c_name(stem, definition.name))
    return own, statements


def _name(target: ast.expr | ast.stmt | None) -> str:
    if not isinstance(target, ast.Name):
        raise SyntaxError(f"the kernels have no {ast.dump(target) if target else 'such'} here")
    return target.id


def _c_name(stem: str, name: str) -> str:
    return f"{stem}_{name.strip('_')}"


def _constants(statement: ast.Assign | ast.AnnAssign, names: Names) -> Names:
    """The integers to which an assignment at the top of a file gives names."""
    assert statement.value is not None
    numbers = {name: value.value for name, value in names.items() if isinstance(value, ast.Constant)}
    code = compile(ast.Expression(statement.value), "a constant of the kernels", "eval")
    value = eval(code, {"__builtins__": {"range": range}}, numbers)  # noqa: S307 - the project's own source
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    if isinstance(target, ast.Tuple):
        return {_name(each): ast.Constant(number) for each, number in zip(target.elts, value, strict=True)}
    return {_name(target): ast.Constant(value)}


class _Replaced(ast.NodeTransformer):
    """Puts what stands for a name where the name is read, and the type of numbers that Cython takes for objects."""

    def __init__(self, names: Names, modules: dict[str, Names]) -> None:
        self._names = names
        self._modules = modules

    def visit_Name(self, node: ast.Name) -> ast.expr:
        found = self._names.get(node.id, node) if isinstance(node.ctx, ast.Load) else node
        return self.visit_Constant(found) if isinstance(found, ast.Constant) else found

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id in self._modules:
            found = self._modules[node.value.id][node.attr]
            return self.visit_Constant(found) if isinstance(found, ast.Constant) else found
        self.generic_visit(node)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if not isinstance(node.value, int) or node.value < 1 << 31:
            return node
        kind = "longlong" if node.value < 1 << 63 else "ulonglong"
        return _expression(f"cython.cast(cython.{kind}, {node.value})")


def _functions(function: ast.FunctionDef, c_name: str) -> Iterator[ast.FunctionDef]:
    """The C function of a marked one and, for `compiled`, the Python function."""
    (mark,) = (_name(decorator) for decorator in function.decorator_list)
    if mark == "allocating":
        function.decorator_list = []
        yield function
        return
    returns = function.returns
    is_void = isinstance(returns, ast.Constant) and returns.value is None
    docstring = function.body[:1] if ast.get_docstring(function) is not None else []
    words = [*(["cython.inline"] if mark == "inlined" else []), *_C_FUNCTION]
    yield ast.FunctionDef(
        c_name, function.args, function.body[len(docstring) :], [_expression(word) for word in words],
        _expression("cython.void") if is_void else returns,
    )  # fmt: skip
    if mark == "inlined":
        return
    call = f"{c_name}({', '.join(argument.arg for argument in function.args.args)})"
    lines = f"with cython.nogil:\n    {call}" if is_void else f"with cython.nogil:\n    result = {call}\nreturn result"
    yield ast.FunctionDef(
        function.name, function.args, [*docstring, *ast.parse(lines).body], [], None if is_void else returns
    )


def _extension_class(named_tuple: ast.ClassDef) -> ast.ClassDef:
    docstring = named_tuple.body[:1] if ast.get_docstring(named_tuple) is not None else []
    fields = [statement for statement in named_tuple.body if isinstance(statement, ast.AnnAssign)]
    names = [_name(field.target) for field in fields]
    lines = "".join(f"\n    self.{name} = {name}" for name in names)
    init = ast.parse(f"def __init__(self, {', '.join(names)}):{lines}").body
    words = [_expression(word) for word in _C_CLASS]
    return ast.ClassDef(named_tuple.name, [], [], [*docstring, *fields, *init], words)


def _expression(word: str) -> ast.expr:
    return ast.parse(word, mode="eval").body


def _check_unique(body: list[ast.stmt]) -> None:
    names = [statement.name for statement in body if isinstance(statement, (ast.FunctionDef, ast.ClassDef))]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise SyntaxError(f"the kernels define {', '.join(sorted(twice))} twice")
