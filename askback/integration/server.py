"""A drop-in FastMCP server whose tools may have resolvers."""

import functools
import inspect
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from types import MethodType
from typing import Any, NamedTuple, cast
from weakref import WeakSet

import fastmcp
from fastmcp.decorators import get_fastmcp_meta
from fastmcp.exceptions import ToolError
from fastmcp.prompts import Prompt
from fastmcp.resources import Resource, ResourceTemplate
from fastmcp.server.dependencies import get_context
from fastmcp.server.middleware.caching import ResponseCachingMiddleware
from fastmcp.server.providers.addressing import parse_hashed_backend_name
from fastmcp.server.providers.fastmcp_provider import FastMCPProviderTool
from fastmcp.server.providers.proxy import ProxyTool
from fastmcp.tools import FunctionTool, Tool, ToolResult
from fastmcp.utilities.versions import VersionSpec
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from typing_extensions import TypeVar

from askback.integration.calls import NOT_BESIDE_OTHERS, Call, Ledger
from askback.integration.engine import Limits, find_resolved_parameters
from askback.integration.engine.annotations import name_of
from askback.integration.host import FASTMCP_TYPES
from askback.integration.mounts import mounted_tool
from askback.integration.tools import resolved_names, resolved_tool
from askback.markers import InvalidSignature

Function = Callable[..., Any]
MethodT = TypeVar("MethodT", bound=Function)
ComponentT = TypeVar("ComponentT")
LifespanResultT = TypeVar("LifespanResultT", default=Any)
Prepare = Callable[["FastMCP[Any]", Function, str | None], Function]

RESOLVED = "__askback_resolved__"
"""The attribute under which a function remembers what `resolved` made of it."""


class _Found(NamedTuple):
    """A tool that was looked up for a call, so that FastMCP need not look it up again."""

    server: "FastMCP[Any]"
    name: str
    version: VersionSpec | None
    tool: Tool


_found: ContextVar[_Found | None] = ContextVar("askback_found", default=None)


def _registering(register: MethodT, prepare: Prepare, first_parameter: str = "name_or_fn") -> MethodT:
    """One of FastMCP's registering methods, in all the ways it can be called, for functions prepared first.

    The decorated name stays bound to the function as it was written, as it does with FastMCP.
    """

    @functools.wraps(register)
    def method(self: "FastMCP[Any]", *args: Any, **options: Any) -> Any:
        first = args[0] if args else options.get(first_parameter)
        name = first if isinstance(first, str) else options.get("name")
        if inspect.isroutine(first):
            options.pop(first_parameter, None)
            return _registered(first, prepare(self, first, name), lambda fn: register(self, fn, *args[1:], **options))
        decorate = register(self, *args, **options)

        def decorator(fn: Function) -> Function:
            return _registered(fn, prepare(self, fn, name), decorate)

        return decorator

    return cast("MethodT", method)


def _registered(fn: Function, prepared: Function, register: Callable[[Function], Any]) -> Function:
    """Register the prepared function, and note on the original what FastMCP notes on what it registers."""
    register(prepared)
    if prepared is not fn:
        target: Any = getattr(fn, "__func__", fn)
        target.__fastmcp__ = get_fastmcp_meta(prepared)
    return fn


def _with_resolvers(server: "FastMCP[Any]", fn: Function, name: str | None) -> Function:
    """Let the engine fill a tool's resolved parameters, and its server know their names."""
    if not callable(fn):
        return fn
    prepared = resolved_tool(fn, name or name_of(fn))
    server.resolved_names.update(resolved_names(prepared))
    return prepared


def _without_resolvers(_: "FastMCP[Any]", fn: Function, name: str | None) -> Function:
    """Refuse resolvers where nothing would run them."""
    if callable(fn) and (resolved_names(fn) or find_resolved_parameters(fn, types=FASTMCP_TYPES)):
        raise InvalidSignature(f"{name or name_of(fn)!r} has resolvers; only tools can, not prompts and resources")
    return fn


class FastMCP(fastmcp.FastMCP[LifespanResultT]):
    """`fastmcp.FastMCP`, whose tools may have `Annotated[T, Resolve(...)]` parameters.

    They do not appear in the input schema, and a value that a client sends under such a name is dropped.
    """

    limits = Limits()
    """How much of what a client answers is taken. Assign other `Limits` to a server to change it."""

    tool = _registering(fastmcp.FastMCP.tool, _with_resolvers)
    prompt = _registering(fastmcp.FastMCP.prompt, _without_resolvers)
    resource = _registering(fastmcp.FastMCP.resource, _without_resolvers, "uri")

    @functools.cached_property
    def resolved_names(self) -> set[str]:
        """The names of parameters that some tool here, as far as it is known, fills itself."""
        return set()

    @functools.cached_property
    def _without_markers(self) -> WeakSet[Function]:
        """Functions of providers that need not be looked at again."""
        return WeakSet()

    def add_tool(self, tool: Tool | Function) -> Tool:
        """Add a tool, whose function may have resolvers.

        Raises:
            InvalidSignature: If its resolvers cannot be run.
        """
        if isinstance(tool, FunctionTool):
            return super().add_tool(_rebuilt(tool, _with_resolvers(self, tool.fn, tool.name)))
        if isinstance(tool, Tool):
            _check_transformed(tool)
            self.resolved_names.update(_names_within(tool))
            return super().add_tool(tool)
        return super().add_tool(_with_resolvers(self, tool, getattr(get_fastmcp_meta(tool), "name", None)))

    def add_prompt(self, prompt: Prompt | Function) -> Prompt:
        """Add a prompt, which cannot have resolvers."""
        return super().add_prompt(_plain(self, prompt))

    def add_resource(self, resource: Resource | Function) -> Resource | ResourceTemplate:
        """Add a resource, which cannot have resolvers."""
        return super().add_resource(_plain(self, resource))

    def add_template(self, template: ResourceTemplate) -> ResourceTemplate:
        """Add a resource template, which cannot have resolvers."""
        return super().add_template(_plain(self, template))

    async def get_tool(self, name: str, version: VersionSpec | None = None) -> Tool | None:
        """Get a tool by name."""
        found = _found.get()
        if found is not None and found[:3] == (self, name, version):
            _found.set(None)
            return found.tool
        return await super().get_tool(name, version)

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        version: VersionSpec | None = None,
        run_middleware: bool = True,
    ) -> ToolResult:
        """Call a tool, without the values that were sent under the names of its resolved parameters.

        A tool may call any number of tools that ask. On 2026-07-28, where a question ends the request, its body runs
        again in each round, and a call it has made comes back with the result it had.
        """
        # An extension that takes the call over, as background tasks do, takes it from the chain of middleware.
        may_be_last = not run_middleware or not self.resolved_names.isdisjoint(arguments or ())
        tool = await self._tool_of_call(name, version) if may_be_last else None
        if tool is not None:
            arguments = _without_filled(tool, arguments or {})
        if tool is None or run_middleware:
            return await super().call_tool(name, arguments, version=version, run_middleware=run_middleware)
        caches = [each for each in self.middleware if isinstance(each, ResponseCachingMiddleware)]
        if caches:
            await _check_not_cached(caches, tool, name)

        async def run() -> ToolResult:
            _found.set(_Found(self, name, version, tool))
            return await super(FastMCP, self).call_tool(name, arguments, version=version, run_middleware=False)

        call = await self._begin(tool, name, arguments or {}, version)
        return await (run() if call is None else call.make(run))

    async def _begin(
        self, tool: Tool, name: str, arguments: dict[str, Any], version: VersionSpec | None
    ) -> Call | None:
        """The call as part of its request, where that goes in rounds.

        Raises:
            ToolError: If the call would hand the answers of other tools to another server.
        """
        try:
            context = get_context()
        except RuntimeError:
            # Nobody has called anything: the tool is run for itself, without middleware.
            return None
        request = context.request_context
        if request is None or request.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return None
        outer = Call.current(request)
        if outer is not None and outer.ledger.has_answers and isinstance(await mounted_tool(tool), ProxyTool):
            # FastMCP's proxy sends the state of the request along.
            raise ToolError(NOT_BESIDE_OTHERS.format(name=name))
        fn = _function_of(tool)
        if fn is None and isinstance(tool, FastMCPProviderTool):
            # The mounted server makes the call, if it is one of ours.
            return None
        if outer is not None:
            return outer.nested(name, arguments, version)
        return Call(Ledger(context, self.limits), name, getattr(fn, "__func__", fn))

    async def _tool_of_call(self, name: str, version: VersionSpec | None) -> Tool | None:
        """The tool that FastMCP calls by `name`: as it is listed, or by the hash of an app's tool."""
        tool = await self.get_tool(name, version)
        hashed = parse_hashed_backend_name(name) if tool is None else None
        return await self.get_tool_by_hash(*hashed) if hashed is not None else tool

    async def _check_hashed_target(self, tool: Tool) -> Tool | None:
        checked = await super()._check_hashed_target(tool)
        return checked and self._resolving(checked)

    async def _list_tools(self) -> Sequence[Tool]:
        return [self._resolving(tool) for tool in await super()._list_tools()]

    async def _get_tool(self, name: str, version: VersionSpec | None = None) -> Tool | None:
        tool = await super()._get_tool(name, version)
        return self._resolving(tool) if tool is not None else None

    def _resolving(self, tool: Tool) -> Tool:
        """A tool of whatever provider, whose resolved parameters are filled."""
        fn = _function_of(tool)
        if fn is None or resolved_names(fn) or fn in self._without_markers:
            return tool
        prepared = _remembered(fn, tool.name)
        if prepared is fn:
            self._without_markers.add(fn)
            return tool
        self.resolved_names.update(resolved_names(prepared))
        return _rebuilt(cast("FunctionTool", tool), prepared)


async def _check_not_cached(caches: Sequence[ResponseCachingMiddleware], tool: Tool, name: str) -> None:
    """Refuse to answer a call that a cache would answer next time, without running resolvers or asking anybody.

    Raises:
        ToolError: If a cache of the server keeps the results of the tool.
    """
    if any(_keeps_results_of(each, name) for each in caches) and _names_within(await mounted_tool(tool)):
        raise ToolError(
            f"The tool {name!r} has resolvers, and the server's ResponseCachingMiddleware would answer its next call "
            "from the cache without running them. Exclude it: "
            f"call_tool_settings=CallToolSettings(excluded_tools=[{name!r}])"
        )


def _keeps_results_of(middleware: ResponseCachingMiddleware, tool: str) -> bool:
    """Whether a cache keeps the results of a tool.

    FastMCP has no public way to ask for it; tests/test_caching.py notices if this one is gone.
    """
    settings = middleware._call_tool_settings  # pyright: ignore[reportPrivateUsage]
    is_matched = middleware._matches_tool_cache_settings(tool_name=tool)  # pyright: ignore[reportPrivateUsage]
    return settings.get("enabled") is not False and is_matched


def _remembered(fn: Function, tool: str) -> Function:
    """What `resolved` makes of a function, made once, and kept by the function itself so that both go together."""
    if isinstance(fn, MethodType):
        # A bound method is a new object at each mention, and remembers nothing.
        method = _remembered(fn.__func__, tool)
        return MethodType(method, fn.__self__) if method is not fn.__func__ else fn
    known = getattr(fn, RESOLVED, None)
    # A decorator copies the attributes of what it wraps.
    if known is not None and known.__wrapped__ is fn:
        return known
    made = resolved_tool(fn, tool)
    if made is not fn:
        setattr(fn, RESOLVED, made)
    return made


def _rebuilt(tool: FunctionTool, fn: Function) -> FunctionTool:
    """A tool as it was configured, made of `fn`, and without the parameters that `fn` fills."""
    if fn is tool.fn:
        return tool
    filled = resolved_names(fn)
    if filled.isdisjoint(tool.parameters.get("properties", {})):
        return tool.model_copy(update={"fn": fn})
    needed = FunctionTool.from_function(fn, name=tool.name).parameters
    parameters = {key: value for key, value in tool.parameters.items() if key not in ("$defs", "required")}
    parameters["properties"] = {
        name: value for name, value in tool.parameters.get("properties", {}).items() if name not in filled
    }
    parameters |= {key: needed[key] for key in ("$defs", "required") if key in needed}
    return tool.model_copy(update={"fn": fn, "parameters": parameters})


def _function_of(tool: Tool) -> Function | None:
    """The function of a tool that is made of one."""
    # Most tools are, and to ask a pydantic model for its class takes a while.
    return tool.fn if type(tool) is FunctionTool or isinstance(tool, FunctionTool) else None


def _without_filled(tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call, without those that the tool fills itself."""
    dropped = _names_within(tool)
    if dropped.isdisjoint(arguments):
        return arguments
    declared = tool.parameters.get("properties", {})
    return {key: value for key, value in arguments.items() if key not in dropped or key in declared}


def _names_within(tool: Tool) -> frozenset[str]:
    """The parameters that a tool, or one that it is made of, fills itself."""
    fn = _function_of(tool)
    if fn is not None:
        return resolved_names(fn)
    made_of = getattr(tool, "parent_tool", None)
    names = resolved_names(getattr(tool, "fn", None))
    return names | _names_within(made_of) if made_of is not None else names


def _check_transformed(tool: Tool) -> None:
    """Refuse a tool made of another tool whose resolvers nothing would run."""
    made_of: Any = tool
    while made_of is not None:
        fn = getattr(made_of, "fn", None)
        if fn is not None and find_resolved_parameters(fn, types=FASTMCP_TYPES):
            raise InvalidSignature(
                f"{name_of(fn)!r} has resolvers that it would not run; make it of resolved(fn)", tool=tool.name
            )
        made_of = getattr(made_of, "parent_tool", None)


def _plain(server: FastMCP[Any], component: ComponentT) -> ComponentT:
    """Refuse a prompt or resource whose function has resolvers."""
    fn = component if callable(component) else getattr(component, "fn", None)
    if fn is not None:
        _without_resolvers(server, fn, getattr(component, "name", None))
    return component
