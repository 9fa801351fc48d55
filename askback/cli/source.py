"""The source of a function: where it stands, what it calls, and what its names stand for."""

import ast
import builtins
import contextlib
import functools
import importlib
import importlib.util
import inspect
import io
import random
import re
import sys
import sysconfig
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any

from askback.integration.engine.annotations import callee, closure_of, function_behind

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

UNKNOWN = object()
"""What an expression stands for, where that is known only while the function runs."""

LIBRARIES = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib"))

GROWING = frozenset({"add", "append", "appendleft", "extend", "insert", "setdefault", "update", "write"})
"""The methods that make what they are passed a part of what they are called on."""

IGNORE = re.compile(r"#\s*askback:\s*ignore\[([^\]]*)\]")


@dataclass(frozen=True)
class Place:
    """Where something stands, and the findings its author wants to hear nothing of there."""

    file: str
    line: int
    ignored: frozenset[str] = frozenset()


class SourceFile:
    """A file of Python, parsed."""

    def __init__(self, path: str) -> None:
        self.path = path
        text = Path(path).read_text(encoding="utf-8")
        self.tree = ast.parse(text)
        self.ignored = dict(_ignored_by_line(text))


def _ignored_by_line(text: str) -> Iterator[tuple[int, set[str]]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and (comment := IGNORE.search(token.string)):
            yield token.start[0], {code.strip() for code in comment[1].split(",")}


@functools.cache
def _file(path: str) -> SourceFile | None:
    with contextlib.suppress(OSError, SyntaxError, ValueError):
        return SourceFile(path)
    return None


class FunctionSource:
    """A function as it was written. Without its source it has no node, and no calls are found in it."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.function = function_behind(fn)
        code = getattr(self.function, "__code__", None)
        self.path, self.line = (code.co_filename, code.co_firstlineno) if code is not None else ("<built in>", 0)
        self.file = _file(self.path) if code is not None else None
        self.node = _node_of(code, self.path) if self.file is not None else None
        self._bound_to = _bound_to(callee(fn))
        if self.node is not None:
            self.line = self.node.lineno

    def place(self, node: ast.expr | None = None) -> Place:
        """Where the function stands, or what `node` in it; comments on either silence findings."""
        if self.file is None or self.node is None:
            return Place(self.path, self.line)
        body = self.node.body
        begins = (body[0] if isinstance(body, list) else body).lineno
        lines = {self.node.lineno, *range(self.node.lineno, begins)}
        if node is not None:
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        ignored = frozenset(code for line in lines for code in self.file.ignored.get(line, ()))
        return Place(self.path, node.lineno if node is not None else self.line, ignored)

    def calls(self) -> Iterator[ast.Call]:
        """Every call that is written in the function, from top to bottom."""
        nodes = list(ast.walk(self.node)) if self.node is not None else []
        yield from sorted((each for each in nodes if isinstance(each, ast.Call)), key=lambda call: call.lineno)

    def returned(self) -> Iterator[ast.expr]:
        """Every expression that it returns."""
        if isinstance(self.node, ast.Lambda):
            yield self.node.body
        elif self.node is not None:
            returned = [each.value for each in ast.walk(self.node) if isinstance(each, ast.Return)]
            yield from (each.value if isinstance(each, ast.Await) else each for each in returned if each is not None)

    @functools.cached_property
    def assigned(self) -> dict[str, list[ast.expr]]:
        """What each local variable is made of: what was assigned to it, looped over, or passed to its methods."""
        made_of: dict[str, list[ast.expr]] = {}
        for node in ast.walk(self.node) if self.node is not None else ():
            for target, value in _assignments(node):
                for name in _names_in(target):
                    made_of.setdefault(name, []).append(value)
        return made_of

    def stands_for(self, expression: ast.expr | None) -> Any:
        """The object that a name, or a name in a module or class, stands for; `UNKNOWN` for anything else."""
        if isinstance(expression, ast.Name):
            return self._named(expression.id)
        if isinstance(expression, ast.Subscript):
            return self.stands_for(expression.value)
        if isinstance(expression, ast.Attribute):
            return _attribute(self.stands_for(expression.value), expression.attr)
        return UNKNOWN

    def _named(self, name: str) -> Any:
        if name in self._imported:
            return self._imported[name]
        if name in self.assigned:
            values = self.assigned[name]
            itself = any(isinstance(each, ast.Name) and each.id == name for each in values)
            return self.stands_for(values[0]) if len(values) == 1 and not itself else UNKNOWN
        if name in self._parameters:
            return self._bound_to if name == self._parameters[0] else UNKNOWN
        for names in (closure_of(self.function), getattr(self.function, "__globals__", {}), vars(builtins)):
            if name in names:
                return names[name]
        return UNKNOWN

    @functools.cached_property
    def _parameters(self) -> list[str]:
        """Those of the function, and then of the functions in it."""
        nodes = ast.walk(self.node) if self.node is not None else ()
        return [each.arg for each in nodes if isinstance(each, ast.arg)]

    @functools.cached_property
    def _imported(self) -> dict[str, Any]:
        """What the function imports itself. Nothing of that is imported for our sake, but the standard library."""
        imported: dict[str, Any] = {}
        for node in ast.walk(self.node) if self.node is not None else ():
            if isinstance(node, ast.Import):
                for each in node.names:
                    module = each.name if each.asname else each.name.partition(".")[0]
                    imported[each.asname or module] = _module(module)
            elif isinstance(node, ast.ImportFrom):
                package = getattr(self.function, "__globals__", {}).get("__package__") or ""
                module = "." * node.level + (node.module or "")
                with contextlib.suppress(ImportError):
                    module = importlib.util.resolve_name(module, package)
                imported |= {each.asname or each.name: _attribute(_module(module), each.name) for each in node.names}
        return imported


def is_library(path: str) -> bool:
    """Whether a file belongs to Python, or was installed: nobody who reads a finding would mend it there."""
    return any(Path(path).resolve().is_relative_to(library) for library in LIBRARIES)


@functools.cache
def _node_of(code: Any, path: str) -> FunctionNode | None:
    """The node in a file that was compiled to `code`."""
    file = _file(path)
    for node in ast.walk(file.tree) if file is not None else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if first == code.co_firstlineno:
                return node
        elif isinstance(node, ast.Lambda) and code.co_name == "<lambda>":
            # Several may stand on one line, or in one expression.
            body = (node.body.lineno, node.body.end_lineno, node.body.col_offset, node.body.end_col_offset)
            if body in set(code.co_positions()):
                return node
    return None


def _assignments(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(node, ast.Assign):
        yield from ((target, node.value) for target in node.targets)
    elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value is not None:
        yield node.target, node.value
    elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        yield node.target, node.iter
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield node.optional_vars, node.context_expr
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        if isinstance(call.func, ast.Attribute) and call.func.attr in GROWING:
            passed = (*call.args, *(each.value for each in call.keywords))
            yield from ((call.func.value, argument) for argument in passed)


def _names_in(target: ast.expr) -> Iterator[str]:
    """The variables that an assignment changes. An attribute is no variable: what it belongs to has others."""
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Subscript | ast.Starred):
        yield from _names_in(target.value)
    elif isinstance(target, ast.Tuple | ast.List):
        for each in target.elts:
            yield from _names_in(each)


def _bound_to(target: Any) -> Any:
    """What the first parameter of a function stands for, where it is a method: its object or class."""
    if isinstance(target, MethodType):
        return target.__self__
    return UNKNOWN if inspect.isroutine(target) or isinstance(target, type) else target


def _module(name: str) -> Any:
    if name in sys.modules:
        return sys.modules[name]
    return importlib.import_module(name) if name.partition(".")[0] in sys.stdlib_module_names else UNKNOWN


def _attribute(owner: Any, name: str) -> Any:
    """An attribute that can be had without running anything of a server's."""
    if owner is UNKNOWN:
        return UNKNOWN
    if isinstance(owner, ModuleType | type | random.Random):
        with contextlib.suppress(Exception):
            return getattr(owner, name)
        return UNKNOWN
    found: Any = inspect.getattr_static(owner, name, UNKNOWN)
    if type(found) in (FunctionType, classmethod, staticmethod):
        return found.__get__(owner)
    return found
