"""A drop-in FastMCP server whose tools may have resolvers."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, cast

import fastmcp
from fastmcp.decorators import get_fastmcp_meta
from fastmcp.prompts import Prompt
from fastmcp.resources import Resource, ResourceTemplate
from fastmcp.tools import FunctionTool, Tool, ToolResult
from fastmcp.utilities.versions import VersionSpec
from typing_extensions import TypeVar

from askback.integration.contexts import FASTMCP_TYPES
from askback.integration.engine import find_resolved_parameters
from askback.integration.engine.annotations import name_of
from askback.integration.tools import resolved_names, resolved_tool
from askback.words import InvalidSignature

Function = Callable[..., Any]
MethodT = TypeVar("MethodT", bound=Function)
ComponentT = TypeVar("ComponentT")
LifespanResultT = TypeVar("LifespanResultT", default=Any)
Prepare = Callable[["FastMCP[Any]", Function, str | None], Function]


def _registering(register: MethodT, prepare: Prepare) -> MethodT:
    """One of FastMCP's registering methods, in all the ways it can be called, for functions prepared first.

    The decorated name stays bound to the function as it was written, as it does with FastMCP.
    """

    @functools.wraps(register)
    def method(self: "FastMCP[Any]", *args: Any, **options: Any) -> Any:
        first = args[0] if args else None
        name = first if isinstance(first, str) else options.get("name")
        if inspect.isroutine(first):
            register(self, prepare(self, first, name), *args[1:], **options)
            return first
        decorate = register(self, *args, **options)

        def decorator(fn: Function) -> Function:
            decorate(prepare(self, fn, name))
            return fn

        return decorator

    return cast("MethodT", method)


def _with_resolvers(server: "FastMCP[Any]", fn: Function, name: str | None) -> Function:
    """Let the engine fill a tool's resolved parameters, and its server know their names."""
    prepared = resolved_tool(fn, name or name_of(fn))
    server.resolved_names |= resolved_names(prepared)
    return prepared


def _without_resolvers(_: "FastMCP[Any]", fn: Function, name: str | None) -> Function:
    """Refuse resolvers where nothing would run them."""
    if resolved_names(fn) or find_resolved_parameters(fn, types=FASTMCP_TYPES):
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
    resource = _registering(fastmcp.FastMCP.resource, _without_resolvers)

    def add_tool(self, tool: Tool | Function) -> Tool:
        """Add a tool, whose function may have resolvers.

        Raises:
            InvalidSignature: If its resolvers cannot be run.
        """
        if isinstance(tool, FunctionTool):
            prepared = _with_resolvers(self, tool.fn, tool.name)
            return super().add_tool(tool if prepared is tool.fn else _rebuilt(tool, prepared))
        if isinstance(tool, Tool):
            _check_transformed(tool)
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
            dropped = resolved_names(getattr(tool, "fn", None))
            arguments = {key: value for key, value in arguments.items() if key not in dropped}
        return await super().call_tool(name, arguments, version=version, run_middleware=run_middleware)


def _rebuilt(tool: FunctionTool, fn: Function) -> FunctionTool:
    """A tool as it was configured, made of `fn`."""
    return FunctionTool.from_function(
        fn,
        name=tool.name,
        version=tool.version,
        title=tool.title,
        description=tool.description,
        icons=tool.icons,
        tags=tool.tags,
        annotations=tool.annotations,
        output_schema=tool.output_schema,
        meta=tool.meta,
        task=tool.task_config,
        timeout=tool.timeout,
        auth=tool.auth,
        run_in_thread=tool.run_in_thread,
    )


def _check_transformed(tool: Tool) -> None:
    """Refuse a tool made of another tool whose resolvers nothing would run."""
    made_of: Tool | None = tool
    while made_of is not None:
        fn = getattr(made_of, "fn", None)
        if fn is not None and find_resolved_parameters(fn, types=FASTMCP_TYPES):
            raise InvalidSignature(
                f"Tool {tool.name!r}: {name_of(fn)!r} has resolvers that it would not run; make it of resolved(fn)"
            )
        made_of = getattr(made_of, "parent_tool", None)


def _plain(server: FastMCP[Any], component: ComponentT) -> ComponentT:
    """Refuse a prompt or resource whose function has resolvers."""
    fn = component if callable(component) else getattr(component, "fn", None)
    if fn is not None:
        _without_resolvers(server, fn, getattr(component, "name", None))
    return component
