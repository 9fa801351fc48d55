"""Whether a file has a server to import, or is a script to run: its source says so, and nothing is run to find out."""

import ast
import contextlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeGuard

Function = ast.FunctionDef | ast.AsyncFunctionDef

RUN = re.compile(r"run(_\w*async)?")
RUNNERS = ("anyio", "asyncio", "subprocess", "trio")
"""What has a `run` that serves nothing, or nothing but what it is given."""

GUARDS = ("__name__ == '__main__'", "'__main__' == __name__")


def is_script(path: Path, names: Iterable[str]) -> bool:
    """Whether a file has to be run: importing it would serve, or it has a server of none of these names and does more.

    More is a part for `__name__ == "__main__"`, or a call for its own sake.
    """
    source = _parsed(path)
    return _serving_line(source) is not None or (not _bound(source) & set(names) and _does_more(source))


def serving_line(path: Path) -> int | None:
    """The line that makes a file serve as soon as it is imported, if there is one."""
    return _serving_line(_parsed(path))


def _parsed(path: Path) -> ast.Module:
    # What cannot be read is for the import to complain of.
    with contextlib.suppress(OSError, SyntaxError, ValueError):
        return ast.parse(path.read_bytes())
    return ast.Module([], [])


def _serving_line(source: ast.Module) -> int | None:
    """Where `mcp.run()`, `uvicorn.run()` or the like stands, in what is executed or in a function that this calls."""
    functions = {each.name: each for each in ast.walk(source) if isinstance(each, Function)}
    waiting: list[ast.AST] = [source]
    while waiting:
        calls = [each for each in _executed(waiting.pop()) if isinstance(each, ast.Call)]
        for call in calls:
            # Some are called by others: anyio.run(mcp.run_async), asyncio.run(main()).
            called = (call.func, *call.args, *(each.value for each in call.keywords))
            if any(map(_serves, called)):
                return call.lineno
            names = {each.id for each in called if isinstance(each, ast.Name)}
            waiting += [functions.pop(name) for name in names & functions.keys()]
    return None


def _serves(called: ast.expr) -> bool:
    if not isinstance(called, ast.Attribute) or not RUN.fullmatch(called.attr):
        return False
    return ast.unparse(called.value) not in RUNNERS


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """What an import executes: all but the bodies of functions, and what is only for a script."""
    yield node
    for child in ast.iter_child_nodes(node):
        if _is_guard(child):
            yield from _executed(ast.Module(child.orelse, []))
        elif not isinstance(child, Function | ast.Lambda):
            yield from _executed(child)


def _is_guard(node: ast.AST) -> TypeGuard[ast.If]:
    """Whether it is `if __name__ == "__main__":`, either way round."""
    return isinstance(node, ast.If) and ast.unparse(node.test) in GUARDS


def _does_more(source: ast.Module) -> bool:
    calls = (isinstance(each, ast.Expr) and isinstance(each.value, ast.Call) for each in source.body)
    return any(map(_is_guard, source.body)) or any(calls)


def _bound(source: ast.Module) -> set[str]:
    """The names that the file gives to something."""
    bound: set[str] = set()
    for node in _executed(source):
        if isinstance(node, ast.alias):
            bound.add(node.asname or node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
    return bound
