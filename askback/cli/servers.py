"""Finding the server that a command names, and its tools."""

import contextlib
import difflib
import importlib
import importlib.util
import inspect
import operator
import sys
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn, cast

import anyio
import fastmcp
import uvicorn
from fastmcp.server.context import set_transport
from fastmcp.server.providers.fastmcp_provider import FastMCPProviderTool
from fastmcp.tools import Tool
from fastmcp.tools.tool_transform import TransformedTool
from fastmcp.utilities.versions import VersionSpec
from mcp.server.mcpserver import MCPServer

from askback.cli.errors import CommandError, NoServerError, RejectedToolError
from askback.integration import ResolverPlan
from askback.integration.tools import ResolverPlans, resolver_plans
from askback.markers import InvalidSignature

Server = fastmcp.FastMCP[Any]

USUAL_NAMES = ("mcp", "server", "app")
"""Where FastMCP's own commands look for a server in a module."""

FRAMEWORKS = frozenset(
    {"anyio", "askback", "asyncio", "fastmcp", "importlib", "mcp", "operator", "uvicorn", "_frozen_importlib"}
)
"""Packages whose lines in a traceback do not help the author of a server."""

SERVING: tuple[tuple[type, tuple[str, ...]], ...] = (
    (fastmcp.FastMCP, ("run", "run_async", "run_stdio_async", "run_http_async")),
    (MCPServer, ("run", "run_stdio_async", "run_sse_async", "run_streamable_http_async")),
    (uvicorn.Server, ("run", "serve")),
)
"""The methods by which a module would start to serve, instead of being imported."""


@dataclass(frozen=True)
class ServedTool:
    """A tool of a server, and how its resolved parameters are filled."""

    name: str
    arguments: tuple[str, ...]
    """The arguments in its input schema."""
    fn: Callable[..., Any]
    resolved: ResolverPlans


@dataclass(frozen=True)
class LoadedServer:
    """A server that was named on the command line."""

    module: ModuleType
    tools: tuple[ServedTool, ...]
    """Those whose functions are in this process."""
    remote_tools: tuple[str, ...]
    """The names of the others, such as a proxy's."""
    tools_of_others: tuple[Callable[..., Any], ...]
    """The functions of tools that belong to other servers in this process."""

    @property
    def resolvers(self) -> Iterator[tuple[ServedTool, ResolverPlan]]:
        """The resolvers of each tool; a shared one is repeated for each tool."""
        return ((tool, plan) for tool in self.tools for plan in tool.resolved.plans)

    @property
    def remote(self) -> str:
        """The end of a sentence about the tools that run elsewhere, if there are any."""
        return f"run elsewhere and cannot be inspected: {', '.join(self.remote_tools)}" if self.remote_tools else ""


def load_server(name: str) -> LoadedServer:
    """Import the server that `name` names, and list its tools.

    Raises:
        CommandError: If there is no such server, its module fails, or its tools cannot be inspected.
        RejectedToolError: If a tool was rejected because of its resolvers.
    """
    module, server = server_named(name)
    if isinstance(server, MCPServer):
        raise CommandError(
            f"{name!r} is an MCPServer of the MCP SDK, which gives no access to the functions of its "
            f"tools{_servers_in(module)}"
        )
    with _failing(f"the tools of {name!r} cannot be listed"):
        return anyio.run(inspected, module, server)


def server_named(name: str) -> tuple[ModuleType, Server | MCPServer]:
    """Import what `name` names: `module:attribute`, `path/to/file.py:attribute`, or either without the attribute.

    Raises:
        CommandError: If there is no such server, or its module fails.
        RejectedToolError: If a tool was rejected because of its resolvers.
    """
    if "://" in name:
        raise CommandError(f"{name!r} is a URL, which only `askback call` takes: this command reads the server's code")
    where, _, attribute = (name, "", "") if name.endswith(".py") else name.rpartition(":")
    if not where:
        where, attribute = attribute, ""
    module = _imported(where)
    return module, _server_in(module, where, attribute)


def _imported(where: str) -> ModuleType:
    is_file = where.endswith(".py")
    path = Path(where).expanduser().resolve()
    for folder in [Path.cwd(), path.parent] if is_file else [Path.cwd()]:
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    if is_file and not path.is_file():
        raise CommandError(
            f"there is no file {where!r}{did_you_mean(path.name, (each.name for each in _files(path.parent)))}"
        )
    if not is_file and not all(part.isidentifier() for part in where.split(".")):
        raise CommandError(
            f"{where!r} is not the name of a module; name a server as module:attribute or path/to/file.py:attribute"
        )
    with _failing(f"{where!r} fails when it is imported"), _not_serving(where):
        if is_file:
            return _executed(path)
        try:
            return importlib.import_module(where)
        except ModuleNotFoundError as missing:
            if missing.name is None or not f"{where}.".startswith(f"{missing.name}."):
                raise
            modules = (each.stem for each in _files(Path.cwd()))
            raise CommandError(
                f"there is no module {missing.name!r} in {Path.cwd()} or on Python's path{did_you_mean(where, modules)}"
            ) from missing


def _files(folder: Path) -> Iterator[Path]:
    return folder.glob("*.py")


class _ServingError(Exception):
    """A module starts to serve while it is imported."""


@contextlib.contextmanager
def _not_serving(where: str) -> Generator[None]:
    """Fail an import that would start to serve: it would read our standard input, and never return."""

    def fail(*args: object, **options: object) -> NoReturn:
        raise _ServingError

    with contextlib.ExitStack() as stack:
        for server, methods in SERVING:
            for name in methods:
                owner = next(each for each in server.__mro__ if name in vars(each))
                stack.callback(setattr, owner, name, vars(owner)[name])
                setattr(owner, name, fail)
        try:
            yield
        except _ServingError as serving:
            file, line = _place_of(serving)
            raise CommandError(
                f"{where!r} starts to serve as soon as it is imported ({file}, line {line}): put that under "
                "if __name__ == '__main__':"
            ) from None


def _executed(path: Path) -> ModuleType:
    # Under its own name, modules beside it can import it back, unless the name is taken.
    name = path.stem if path.stem not in sys.modules else str(path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _names_of_servers(module: ModuleType) -> list[str]:
    return [name for name, value in vars(module).items() if isinstance(value, fastmcp.FastMCP | MCPServer)]


def _servers_in(module: ModuleType) -> str:
    there = _names_of_servers(module)
    return f"; it has {', '.join(there)}" if there else "; it has no server at all"


def _server_in(module: ModuleType, where: str, attribute: str) -> Server | MCPServer:
    there, servers = _names_of_servers(module), _servers_in(module)
    if not attribute:
        attribute = next((name for name in USUAL_NAMES if name in there), "")
        if not attribute:
            error = CommandError if there else NoServerError
            raise error(f"{where!r} has no server called {', '.join(USUAL_NAMES)}{servers}")
    try:
        value = operator.attrgetter(attribute)(module)
    except AttributeError:
        near = did_you_mean(attribute, there)
        raise CommandError(f"{where!r} has no {attribute!r}{near or servers}") from None
    if inspect.isfunction(value) and not inspect.signature(value).parameters:
        with _failing(f"{attribute!r} of {where!r} fails when it is called"):
            value = anyio.run(_made_by, value)
    if not isinstance(value, fastmcp.FastMCP | MCPServer):
        raise CommandError(f"{attribute!r} of {where!r} is not a server but of type {type(value).__name__}{servers}")
    return cast("Server | MCPServer", value)


async def _made_by(factory: Callable[[], Any]) -> Any:
    made = factory()
    return await made if inspect.isawaitable(made) else made


async def inspected(module: ModuleType, server: Server) -> LoadedServer:
    """A server of this process, and its tools."""
    # Over stdio FastMCP trusts its client, so that no tool is hidden for lack of a token.
    set_transport("stdio")
    # Otherwise a failing provider is skipped with only a warning.
    server.provider_error_strategy = "raise"
    served: list[ServedTool] = []
    remote: list[str] = []
    for tool in await server.list_tools(run_middleware=False):
        name = f"{tool.name}@{tool.version}" if tool.version else tool.name
        fn = await _function_of(tool)
        if fn is None:
            remote.append(name)
        else:
            served.append(ServedTool(name, tuple(tool.parameters.get("properties", {})), fn, resolver_plans(fn)))
    # Only their own tools: listing those of their providers might open connections.
    own = [tool for other in _servers_but(server) for tool in await other.local_provider.list_tools()]
    functions = [await _function_of(tool) for tool in own]
    return LoadedServer(module, tuple(served), tuple(remote), tuple(each for each in functions if each is not None))


def _servers_but(server: Server) -> list[Server]:
    """The other servers in the modules of this process."""
    values = [value for module in list(sys.modules.values()) for value in getattr(module, "__dict__", {}).values()]
    # isinstance() may run code of the objects it looks at.
    others = {id(each): each for each in values if issubclass(type(each), fastmcp.FastMCP) and each is not server}
    return list(others.values())


async def _function_of(tool: Tool | None) -> Callable[..., Any] | None:
    """The function that a tool finally runs, on whichever server; None if it is not in this process."""
    while True:
        if isinstance(tool, TransformedTool) and not resolver_plans(tool.fn).plans:
            tool = tool.parent_tool
        elif isinstance(tool, FastMCPProviderTool):
            # FastMCP has no public way from a mounted tool to its server.
            server: Server = tool._server  # pyright: ignore[reportPrivateUsage]
            name = str(tool.get_span_attributes()["fastmcp.delegate.original_name"])
            tool = await server.get_tool(name, VersionSpec(eq=tool.version) if tool.version else None)
        else:
            return getattr(tool, "fn", None)


@contextlib.contextmanager
def _failing(what: str) -> Generator[None]:
    """Turn errors in the server's code into a sentence, and send what it prints to the standard error."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except CommandError:
        raise
    except InvalidSignature as invalid:
        raise RejectedToolError(invalid, *_place_of(invalid)) from invalid
    except (Exception, SystemExit) as error:
        file, line = _place_of(error)
        raise CommandError(f"{what}: {type(error).__name__}: {error} ({file}, line {line})") from error


def _place_of(error: BaseException) -> tuple[str, int]:
    """Where in its author's code an error was raised."""
    if isinstance(error, SyntaxError) and error.filename:
        return error.filename, error.lineno or 0
    frames = list(traceback.walk_tb(error.__traceback__))
    theirs = [each for each in frames if _package(each[0].f_globals) not in FRAMEWORKS]
    frame, line = (theirs or frames)[-1]
    return frame.f_code.co_filename, line


def _package(names: dict[str, Any]) -> str:
    return str(names.get("__name__", "")).partition(".")[0]


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: similar names, if there are any."""
    near = difflib.get_close_matches(name, list(names))
    return f"; did you mean {' or '.join(near)}?" if near else ""
