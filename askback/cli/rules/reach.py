"""Resolvers that no tool uses."""

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from fastmcp.decorators import get_fastmcp_meta

from askback.cli.findings import Finding
from askback.cli.places import is_library, place_of
from askback.cli.servers import LoadedServer
from askback.integration import find_resolved_parameters
from askback.integration.engine.annotations import arms, function_behind, is_class_of, read_return
from askback.integration.engine.questions import MARKERS
from askback.integration.host import FASTMCP_TYPES
from askback.integration.tools import resolver_plans
from askback.markers import InvalidSignature


def unreached_resolvers(server: LoadedServer) -> Iterator[Finding]:
    """Report resolvers, in the modules of the server and of the resolvers it uses, that no tool uses."""
    modules = _modules(server)
    functions = [each for module in modules for each in _functions_of(module)]
    tools = [tool.fn for tool in server.tools] + list(server.tools_of_others)
    # A disabled tool, or one of a server that is created later, is still a tool.
    tools += [each for each in functions if resolver_plans(each).plans or get_fastmcp_meta(each) is not None]
    reached = _reached(tools)
    for function in functions:
        if id(function_behind(function)) not in reached and _is_resolver(function):
            yield Finding(
                "unreached-resolver",
                (),
                function.__name__,
                place_of(function),
                "No tool of this server uses this resolver, so it never runs.",
                f"Annotate a parameter with Resolve({function.__name__}), or remove the resolver if no other server "
                "uses it.",
            )


def _modules(server: LoadedServer) -> list[ModuleType]:
    """The server's module and those of its resolvers, except libraries: a server need not use all of a library."""
    names = [getattr(function_behind(plan.fn), "__module__", "") for _, plan in server.resolvers]
    modules = {name: sys.modules[name] for name in names if name in sys.modules}
    own = server.module.__name__.partition(".")[0]
    return [
        server.module,
        *(
            module
            for name, module in modules.items()
            if module is not server.module and (name.partition(".")[0] == own or not is_library(module.__file__ or ""))
        ),
    ]


def _functions_of(module: ModuleType) -> Iterator[FunctionType]:
    for value in vars(module).values():
        if inspect.isfunction(value) and value.__module__ == module.__name__:
            yield value


def _reached(tools: Iterable[Callable[..., Any]]) -> set[int]:
    """The functions that calls of the tools may run: their own, their resolvers, and those that these mention."""
    waiting: list[Any] = list(tools)
    seen: dict[int, Any] = {}
    reached: set[int] = set()
    while waiting:
        fn = waiting.pop()
        if id(fn) in seen:
            continue
        seen[id(fn)] = fn
        function = function_behind(fn)
        reached.add(id(function))
        waiting += [plan.fn for plan in resolver_plans(fn).plans]
        # The module has the tool as it was written; the server has a wrapper around it.
        waiting += [marker.fn for marker, _ in _resolved_parameters(function).values()]
        waiting += _mentioned(function)
    return reached


def _mentioned(function: Any) -> Iterator[Any]:
    names: dict[str, Any] = getattr(function, "__globals__", {})
    for code in _codes(getattr(function, "__code__", None)):
        known = [names[name] for name in code.co_names if name in names]
        inside = [vars(each).get(name) for each in known if isinstance(each, ModuleType) for name in code.co_names]
        yield from (each for each in (*known, *inside) if inspect.isfunction(each))


def _codes(code: CodeType | None) -> Iterator[CodeType]:
    if code is not None:
        yield code
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                yield from _codes(constant)


def _resolved_parameters(function: Any) -> dict[str, Any]:
    try:
        return find_resolved_parameters(function, types=FASTMCP_TYPES)
    except InvalidSignature:
        return {}


def _is_resolver(function: FunctionType) -> bool:
    try:
        asks = any(is_class_of(arm, MARKERS) for arm in arms(read_return(function)))
    except InvalidSignature:
        return False
    return asks or bool(_resolved_parameters(function))
