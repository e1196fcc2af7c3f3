"""Finds assertions of tests that may never be reached: `make lint` runs it over tests/.

    tests/a/test_b.py:14: the loop over `images` may have no turn, and then test_c does not assert what is in it
    tests/a/test_b.py:20: test_d asserts nothing unless `images`

A loop has a turn for certain where it goes over a literal, a constant, an enumeration, `range` of a number, or
`at_least_one(…)` of tests/at_least_one.py, over what hypothesis draws (few of its many examples are empty), or where an
assertion outside names what the loop goes over or what it changes. A test asserts something for certain in its own
statements, in such a loop, in every branch of a condition, or in a function of tests/ that it calls. Where less is
right, the line of the loop or the condition says why: `# may assert nothing: REASON`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import attrs

ROOT: Final = Path(__file__).resolve().parents[1]
MARKER: Final = "# may assert nothing: "
AT_LEAST_ONE: Final = "at_least_one"
EXPECTING: Final = {"raises", "warns", "deprecated_call", "fail"}
"""Functions of pytest that fail by themselves."""
AS_LONG_AS_THE_FIRST: Final = {
    "MappingProxyType", "accumulate", "cycle", "dict", "enumerate", "frozenset", "iter", "list", "reversed", "set",
    "sorted", "tuple",
}  # fmt: skip
AS_LONG_AS_ALL: Final = {"zip", "product"}
AS_LONG_AS_THEIR_OBJECT: Final = {"items", "values", "keys", "copy"}
FAILING: Final = {"AssertionError", "BaseException", "Exception"}
"""A handler of one of these hides an assertion that fails."""

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTION: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOP: Final = (ast.For, ast.AsyncFor, ast.While)
LATER: Final = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.IfExp)
"""Expressions whose parts may not be evaluated."""


def main() -> int:
    """Print a line for each finding; 1 where there is one."""
    files = [Path(name).resolve() for name in sys.argv[1:]] or sorted((ROOT / "tests").rglob("test_*.py"))
    sources = Sources(ROOT)
    findings = [finding for file in files for finding in findings_in(file, sources)]
    sys.stdout.writelines(f"{finding}\n" for finding in findings)
    return 1 if findings else 0


def findings_in(file: Path, sources: Sources) -> Iterator[str]:
    """A line for each loop and each test of a file whose assertions may all be skipped."""
    text = file.read_text("utf-8")
    module, lines = Module(ast.parse(text)), text.splitlines()
    shown = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
    for owner in (module.tree, *(node for node in module.tree.body if isinstance(node, ast.ClassDef))):
        for test in owner.body:
            if not isinstance(test, FUNCTION) or not test.name.startswith("test"):
                continue
            body = Body(test, module, sources, owner if isinstance(owner, ast.ClassDef) else None)
            found = {loop.lineno: _of_loop(loop, test) for loop in body.empty_loops()}
            if not found and not body.is_certain(test.body) and (why := body.uncertain(test.body)) is not None:
                found = {why.lineno: f"{test.name} asserts nothing {_when(why)}"}
            yield from (f"{shown}:{line}: {said}" for line, said in found.items() if MARKER not in lines[line - 1])


def _of_loop(loop: ast.For | ast.AsyncFor, test: Function) -> str:
    return (
        f"the loop over `{ast.unparse(loop.iter)}` may have no turn, and then {test.name} does not assert what is in it"
    )


def _when(node: ast.stmt) -> str:
    if isinstance(node, ast.If | ast.While):
        return f"unless `{ast.unparse(node.test)}`"
    if isinstance(node, ast.For | ast.AsyncFor):
        return f"when the loop over `{ast.unparse(node.iter)}` has no turn"
    if isinstance(node, ast.Try | ast.With | ast.AsyncWith):
        return "when an error ends this block"
    return "when the function ends here"


@attrs.frozen(eq=False)
class Module:
    """A file's syntax tree; `names` has its functions, classes and imports, and the values that names are given."""

    tree: ast.Module
    names: dict[str, ast.AST] = attrs.field(init=False)

    @names.default
    def _names(self) -> dict[str, ast.AST]:
        found: dict[str, ast.AST] = {}
        statements = list(self.tree.body)
        for node in statements:
            match node:
                case ast.If() | ast.Try():  # imports for types, and of what may be missing
                    statements += node.body
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    found[node.name] = node
                case ast.ImportFrom():
                    found |= {alias.asname or alias.name: node for alias in node.names}
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                ):
                    found[name] = value
        return found


@attrs.define(eq=False)
class Sources:
    """The modules of a repository, and which of its functions assert something for certain; each is read once."""

    root: Path
    _modules: dict[str, Module | None] = attrs.field(factory=dict, init=False)
    _certain: dict[Function, bool] = attrs.field(factory=dict, init=False)

    def lookup(self, name: str, module: Module) -> tuple[ast.AST, Module] | None:
        """What a name of a module is, and the module that says so, over imports from the repository."""
        node = module.names.get(name)
        if not isinstance(node, ast.ImportFrom):
            return None if node is None else (node, module)
        if node.module not in self._modules:
            path = self.root / (node.module or "").replace(".", "/")
            files = [file for file in (path.with_suffix(".py"), path / "__init__.py") if node.module and file.is_file()]
            self._modules[node.module or ""] = Module(ast.parse(files[0].read_text("utf-8"))) if files else None
        home = self._modules[node.module or ""]
        original = next(alias.name for alias in node.names if (alias.asname or alias.name) == name)
        return None if home is None or home is module else self.lookup(original, home)

    def is_certain(self, function: Function, module: Module, owner: ast.ClassDef | None) -> bool:
        """Whether a function asserts something whenever it returns; of one that calls itself, the rest of it."""
        if function not in self._certain:
            self._certain[function] = False
            self._certain[function] = Body(function, module, self, owner).is_certain(function.body)
        return self._certain[function]


@attrs.frozen(eq=False)
class Body:
    """A function, and where its names are looked up: in itself, in its module, and in those that it imports."""

    function: Function
    module: Module
    sources: Sources
    owner: ast.ClassDef | None = None
    nodes: Sequence[ast.AST] = attrs.field(init=False)

    @nodes.default
    def _nodes(self) -> list[ast.AST]:
        return list(_nodes_of(self.function))

    def empty_loops(self) -> Iterator[ast.For | ast.AsyncFor]:
        """The outermost loops with assertions that may have no turn, while no assertion outside speaks of them."""
        within: set[ast.AST] = set()
        for node in self.nodes:
            if node in within or not isinstance(node, LOOP):
                continue
            inner = list(_nodes_of(node))
            within |= {*inner}
            if isinstance(node, ast.While) or not any(self._may_assert(one) for one in inner):
                continue
            if not self.has_turn(node.iter) and not self._names_of(node) & self._asserted_outside(inner):
                yield node

    def _names_of(self, loop: ast.For | ast.AsyncFor) -> set[str]:
        """The names that a loop goes over, and those that it gives a value or calls a method of."""
        found = {node.id for node in ast.walk(loop.iter) if isinstance(node, ast.Name)}
        for statement in loop.body:
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    found.add(node.id)
                elif isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.value, ast.Name):
                    found.add(node.value.id)
        return found - {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}

    def _asserted_outside(self, inner: list[ast.AST]) -> set[str]:
        within = {*inner}
        return {
            name.id
            for node in self.nodes
            if isinstance(node, ast.Assert) and node not in within
            for name in ast.walk(node)
            if isinstance(name, ast.Name)
        }

    def uncertain(self, statements: Iterable[ast.stmt]) -> ast.stmt | None:
        """The first statement that decides whether an assertion is reached; None where there is no assertion."""
        for statement in statements:
            if isinstance(statement, (*FUNCTION, ast.ClassDef)):
                continue
            if not any(self._may_assert(node) for node in (statement, *_nodes_of(statement))):
                if self._leaves(statement):
                    return statement
            elif (isinstance(statement, ast.With | ast.AsyncWith) and not _suppresses(statement)) or (
                isinstance(statement, ast.For | ast.AsyncFor) and self.has_turn(statement.iter)
            ):
                return self.uncertain(statement.body) or statement
            else:
                return statement
        return None

    def is_certain(self, statements: Iterable[ast.stmt]) -> bool:
        """Whether an assertion has been evaluated once the statements are executed without a fault."""
        for statement in statements:
            if self._is_certain(statement):
                return True
            if self._leaves(statement):
                return False
        return False

    def _is_certain(self, node: ast.stmt) -> bool:
        match node:
            case ast.Assert(test=ast.Call(func=ast.Name(id="all"), args=[ast.GeneratorExp() | ast.ListComp() as each])):
                return self.has_turn(each.generators[0].iter) and not each.generators[0].ifs
            case ast.Assert():
                return True
            case ast.With() | ast.AsyncWith():
                if _suppresses(node):
                    return False
                managers = [item.context_expr for item in node.items]
                return any(self._calls_assertion(one) for one in managers) or self.is_certain(node.body)
            case ast.If():
                return self._calls_assertion(node.test) or (self.is_certain(node.body) and self.is_certain(node.orelse))
            case ast.For() | ast.AsyncFor():
                return self._calls_assertion(node.iter) or (self.has_turn(node.iter) and self.is_certain(node.body))
            case ast.While():
                is_entered = (isinstance(node.test, ast.Constant) and bool(node.test.value)) or _is_wait(node)
                return self._calls_assertion(node.test) or (is_entered and self.is_certain(node.body))
            case ast.Try():
                return self.is_certain(node.finalbody) or self._is_certain_try(node)
            case ast.Match():
                return all(self.is_certain(case.body) for case in node.cases)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return False
        return self._calls_assertion(node)

    def _leaves(self, statement: ast.stmt) -> bool:
        """Whether a statement may end the function, or the turn of a loop, before it asserts something."""
        if isinstance(statement, ast.Return | ast.Continue | ast.Break):
            return True
        if isinstance(statement, LOOP):
            return any(isinstance(node, ast.Return) for node in _nodes_of(statement))
        if isinstance(statement, ast.If):
            branches = [branch for branch in (statement.body, statement.orelse) if not self.is_certain(branch)]
            return any(self._leaves(one) for branch in branches for one in branch)
        inner = [] if isinstance(statement, (*FUNCTION, ast.ClassDef)) else ast.iter_child_nodes(statement)
        return any(self._leaves(node) for node in inner if isinstance(node, ast.stmt))

    def _is_certain_try(self, node: ast.Try) -> bool:
        types = [one.type or ast.Name("BaseException") for one in node.handlers]
        if FAILING & {_name(named) for kind in types for named in ast.walk(kind)}:
            return False
        return self.is_certain([*node.body, *node.orelse]) and all(self.is_certain(one.body) for one in node.handlers)

    def _may_assert(self, node: ast.AST) -> bool:
        if not isinstance(node, ast.Call):
            return isinstance(node, ast.Assert)
        found = self._function(node.func)
        is_asserting = found is not None and any(isinstance(one, ast.Assert) for one in _nodes_of(found[0]))
        return is_asserting or self._is_asserting(node.func)

    def _calls_assertion(self, node: ast.AST) -> bool:
        """Whether a function that is called in an expression asserts something for certain."""
        if isinstance(node, LATER):
            return False
        if isinstance(node, ast.Call) and self._is_asserting(node.func):
            return True
        return any(self._calls_assertion(child) for child in ast.iter_child_nodes(node))

    def _is_asserting(self, called: ast.expr) -> bool:
        if isinstance(called, ast.Attribute) and _name(called.value) == "pytest":
            return called.attr in EXPECTING
        found = self._function(called)
        if found is None:
            return False
        return self.sources.is_certain(*found, self.owner if found[1] is self.module else None)

    def _function(self, called: ast.expr) -> tuple[Function, Module] | None:
        """The function of the tests that is called, a method of `self` too, and its module."""
        name = _name(called)
        if isinstance(called, ast.Attribute):
            nodes: Iterable[ast.AST] = self.owner.body if self.owner and _name(called.value) == "self" else ()
        else:
            nodes = self.nodes
        inner = [node for node in nodes if isinstance(node, FUNCTION) and node.name == name]
        if inner or isinstance(called, ast.Attribute):
            return (inner[0], self.module) if inner else None
        found = self.sources.lookup(name, self.module)
        return (found[0], found[1]) if found is not None and isinstance(found[0], FUNCTION) else None

    def has_turn(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> bool:
        """Whether a loop over a value has a turn for certain."""
        match node:
            case ast.Tuple() | ast.List() | ast.Set():
                return any(not isinstance(one, ast.Starred) or self.has_turn(one.value, seen) for one in node.elts)
            case ast.Dict():
                pairs = zip(node.keys, node.values, strict=True)
                return any(key is not None or self.has_turn(value, seen) for key, value in pairs)
            case ast.Constant():
                return bool(node.value)
            case ast.BinOp(op=ast.Add() | ast.BitOr()):
                return self.has_turn(node.left, seen) or self.has_turn(node.right, seen)
            case ast.BinOp(op=ast.Mult()):
                return self.has_turn(node.left, seen)
            case ast.IfExp():
                return self.has_turn(node.body, seen) and self.has_turn(node.orelse, seen)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                return all(self.has_turn(one.iter, seen) and not one.ifs for one in node.generators)
            case ast.Name():
                return node.id not in seen and self._name_has_turn(node.id, seen | {node.id})
            case ast.Subscript() | ast.Attribute():
                return self._is_drawn(node, seen)
            case ast.Call():
                return self._call_has_turn(node, seen)
        return False

    def _is_drawn(self, node: ast.AST, seen: frozenset[str]) -> bool:
        """Whether a value is made of what hypothesis draws."""
        names = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)} - seen
        if not any(_name(one.func) == "given" for one in self.function.decorator_list if isinstance(one, ast.Call)):
            return False
        if any(name in names for name in (argument.arg for argument in self.function.args.args)):
            return True
        return any(self._is_drawn(value, seen | {name}) for name in names for value in self._values_of(name))

    def _call_has_turn(self, node: ast.Call, seen: frozenset[str]) -> bool:
        name, given = _name(node.func), node.args
        if name == AT_LEAST_ONE or self._is_drawn(node, seen):
            return True
        if isinstance(node.func, ast.Attribute) and name in AS_LONG_AS_THEIR_OBJECT and not given:
            return self.has_turn(node.func.value, seen)
        if not given:
            return False
        if name == "range":
            if any(isinstance(part, ast.Call) and _name(part.func) == "len" for part in ast.walk(node)):
                return False  # of what is found
            return len(given) > 1 or not (isinstance(given[0], ast.Constant) and given[0].value == 0)
        if name == "chain":
            return any(self.has_turn(one, seen) for one in given)
        if name in AS_LONG_AS_ALL:
            is_strict = any(word.arg == "strict" and getattr(word.value, "value", False) for word in node.keywords)
            return (any if is_strict else all)(self.has_turn(one, seen) for one in given)
        return name in AS_LONG_AS_THE_FIRST and self.has_turn(given[0], seen)

    def _name_has_turn(self, name: str, seen: frozenset[str]) -> bool:
        if self._is_drawn(ast.Name(name), seen - {name}):
            return True
        if values := self._values_of(name):
            return all(self.has_turn(value, seen) for value in values)
        found = self.sources.lookup(name, self.module)
        if found is None:
            return False
        value, module = found
        if isinstance(value, ast.ClassDef):
            return True  # an enumeration
        return isinstance(value, ast.expr) and attrs.evolve(self, module=module).has_turn(value, seen)

    def _values_of(self, name: str) -> list[ast.expr]:
        """What a name of the function is assigned."""
        found = []
        for node in self.nodes:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if any(isinstance(one, ast.Name) and one.id == name for each in targets for one in ast.walk(each)):
                    found.append(node.value)
        return found


def _is_wait(loop: ast.While) -> bool:
    """Whether a loop goes on until its condition is met or an assertion about a clock fails."""
    asserted = [name for node in loop.body if isinstance(node, ast.Assert) for name in ast.walk(node)]
    return any(_name(node) in {"deadline", "monotonic"} for node in asserted)


def _suppresses(node: ast.With | ast.AsyncWith) -> bool:
    managers = [item.context_expr for item in node.items]
    return any(isinstance(one, ast.Call) and _name(one.func) == "suppress" for one in managers)


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _nodes_of(node: ast.AST) -> Iterator[ast.AST]:
    """What stands in a node, in its order; of a function in it the head alone."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, (*FUNCTION, ast.ClassDef, ast.Lambda)):
            yield from _nodes_of(child)


if __name__ == "__main__":
    sys.exit(main())
