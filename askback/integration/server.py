"""A drop-in FastMCP server whose tools may have resolvers."""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, cast
from weakref import WeakKeyDictionary, ref

import fastmcp
from fastmcp.decorators import get_fastmcp_meta
from fastmcp.prompts import Prompt
from fastmcp.resources import Resource, ResourceTemplate
from fastmcp.server.providers import Provider
from fastmcp.server.transforms import GetToolNext, Transform
from fastmcp.tools import FunctionTool, Tool, ToolResult
from fastmcp.utilities.versions import VersionSpec
from typing_extensions import TypeVar

from askback.integration.engine import find_resolved_parameters
from askback.integration.engine.annotations import name_of
from askback.integration.host import FASTMCP_TYPES
from askback.integration.tools import resolved_names, resolved_tool
from askback.markers import InvalidSignature

Function = Callable[..., Any]
MethodT = TypeVar("MethodT", bound=Function)
ComponentT = TypeVar("ComponentT")
LifespanResultT = TypeVar("LifespanResultT", default=Any)
Prepare = Callable[["FastMCP[Any]", Function, str | None], Function]


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
    server.resolved_names |= resolved_names(prepared)
    return prepared


def _without_resolvers(_: "FastMCP[Any]", fn: Function, name: str | None) -> Function:
    """Refuse resolvers where nothing would run them."""
    if callable(fn) and (resolved_names(fn) or find_resolved_parameters(fn, types=FASTMCP_TYPES)):
        raise InvalidSignature(f"{name or name_of(fn)!r} has resolvers; only tools can, not prompts and resources")
    return fn


class FastMCP(fastmcp.FastMCP[LifespanResultT]):
    """`fastmcp.FastMCP`, whose tools may have `Annotated[T, Resolve(...)]` parameters.

    They are in no input schema, and a value that a client sends under such a name is dropped.
    """

    resolved_names: frozenset[str] = frozenset()
    """The names that are resolved parameters of some tool here."""

    tool = _registering(fastmcp.FastMCP.tool, _with_resolvers)
    prompt = _registering(fastmcp.FastMCP.prompt, _without_resolvers)
    resource = _registering(fastmcp.FastMCP.resource, _without_resolvers, "uri")

    _watches_providers = False

    def add_transform(self, transform: Transform) -> None:
        """Add a transform, outside the one that sees to tools of other providers."""
        self._watch_providers()
        super().add_transform(transform)

    def add_provider(self, provider: Provider, *, namespace: str = "") -> None:
        """Add a provider, whose tools may have resolvers too."""
        self._watch_providers()
        super().add_provider(provider, namespace=namespace)

    def _watch_providers(self) -> None:
        if not self._watches_providers:
            self._watches_providers = True
            super().add_transform(_ResolvesWhatIsProvided(self))

    def add_tool(self, tool: Tool | Function) -> Tool:
        """Add a tool, whose function may have resolvers.

        Raises:
            InvalidSignature: If its resolvers cannot be run.
        """
        if isinstance(tool, FunctionTool):
            return super().add_tool(_rebuilt(tool, _with_resolvers(self, tool.fn, tool.name)))
        if isinstance(tool, Tool):
            self.resolved_names |= _check_transformed(tool)
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

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        version: VersionSpec | None = None,
        run_middleware: bool = True,
    ) -> ToolResult:
        """Call a tool, without the values that were sent under the names of its resolved parameters."""
        if arguments and not self.resolved_names.isdisjoint(arguments):
            tool = await self.get_tool(name, version)
            if tool is not None:
                dropped = _names_within(tool) - tool.parameters.get("properties", {}).keys()
                arguments = {key: value for key, value in arguments.items() if key not in dropped}
        return await super().call_tool(name, arguments, version=version, run_middleware=run_middleware)


class _ResolvesWhatIsProvided(Transform):
    """Fills the resolved parameters of tools that have come to the server by a provider."""

    def __init__(self, server: FastMCP[Any]) -> None:
        self._server = ref(server)
        self._prepared: WeakKeyDictionary[Function, Function] = WeakKeyDictionary()

    async def list_tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        return [self._resolving(tool) for tool in tools]

    async def get_tool(self, name: str, call_next: GetToolNext, *, version: VersionSpec | None = None) -> Tool | None:
        tool = await call_next(name, version=version)
        return self._resolving(tool) if tool is not None else None

    def _resolving(self, tool: Tool) -> Tool:
        server = self._server()
        if server is None or not isinstance(tool, FunctionTool):
            return tool
        prepared = self._prepared.get(tool.fn)
        if prepared is None:
            prepared = self._prepared[tool.fn] = _with_resolvers(server, tool.fn, tool.name)
        return _rebuilt(tool, prepared)


def _rebuilt(tool: FunctionTool, fn: Function) -> FunctionTool:
    """A tool as it was configured, made of `fn`, and without the parameters that `fn` fills."""
    if fn is tool.fn:
        return tool
    filled = resolved_names(fn)
    needed = FunctionTool.from_function(fn, name=tool.name).parameters
    parameters = {key: value for key, value in tool.parameters.items() if key not in ("$defs", "required")}
    parameters["properties"] = {
        name: value for name, value in tool.parameters.get("properties", {}).items() if name not in filled
    }
    parameters |= {key: needed[key] for key in ("$defs", "required") if key in needed}
    return tool.model_copy(update={"fn": fn, "parameters": parameters})


def _names_within(tool: Tool) -> frozenset[str]:
    """The parameters that a tool, or one that it is made of, fills itself."""
    names = resolved_names(getattr(tool, "fn", None))
    made_of = getattr(tool, "parent_tool", None)
    return names | _names_within(made_of) if isinstance(made_of, Tool) else names


def _check_transformed(tool: Tool) -> frozenset[str]:
    """Refuse a tool made of another tool whose resolvers nothing would run. What it fills itself otherwise."""
    made_of: Any = tool
    while made_of is not None:
        fn = getattr(made_of, "fn", None)
        if fn is not None and find_resolved_parameters(fn, types=FASTMCP_TYPES):
            raise InvalidSignature(
                f"Tool {tool.name!r}: {name_of(fn)!r} has resolvers that it would not run; make it of resolved(fn)"
            )
        made_of = getattr(made_of, "parent_tool", None)
    return _names_within(tool)


def _plain(server: FastMCP[Any], component: ComponentT) -> ComponentT:
    """Refuse a prompt or resource whose function has resolvers."""
    fn = component if callable(component) else getattr(component, "fn", None)
    if fn is not None:
        _without_resolvers(server, fn, getattr(component, "name", None))
    return component
