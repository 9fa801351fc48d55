"""`resolved`: a tool function whose resolvers run on any FastMCP server."""

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from fastmcp import Context
from fastmcp.dependencies import CurrentContext
from fastmcp.exceptions import ToolError
from fastmcp.server.dependencies import transform_context_annotations
from fastmcp.tools.base import InputRequiredToolResult
from mcp.server.mcpserver.exceptions import ToolError as SDKToolError
from mcp_types import InputRequiredResult
from pydantic import AliasChoices
from pydantic.fields import FieldInfo
from uncalled_for import Dependency, current_frame, get_dependency_parameters

from askback.integration.engine import (
    ResolverPlan,
    build_resolver_plans,
    resolve_arguments,
    returns_input_required,
)
from askback.integration.engine.annotations import (
    arms,
    bound_keywords,
    callee,
    is_async,
    is_class_of,
    key_of,
    name_of,
    read_parameters,
    read_return,
    unannotated,
)
from askback.integration.engine.graph import Link, ResolvedParameter, identity, marked_parameters
from askback.integration.host import FASTMCP_TYPES, FastMCPHost
from askback.markers import InvalidSignature

F = TypeVar("F", bound=Callable[..., Any])

Resolved = dict[str, Any] | InputRequiredResult | Exception

RESOLUTION = "askback_resolution"
"""The parameter through which FastMCP hands a call's resolved values to the function. No client sees it."""

RESOLVER_PLANS = "__askback_plans__"
"""The attribute that says how a resolved function fills parameters of the original one."""


@dataclass(frozen=True)
class ResolverPlans:
    """How a function made by `resolved` fills its parameters."""

    plans: tuple[ResolverPlan, ...] = ()
    """Its resolvers, each at its index."""
    links: tuple[Link, ...] = ()
    """The parameters it fills, and by which resolver."""
    hidden: frozenset[str] = frozenset()
    """The parameters that no client may fill: those, and what the author has bound in their place."""


NO_PLANS = ResolverPlans()


def resolved(fn: F) -> F:
    """Fill a tool's `Annotated[T, Resolve(...)]` parameters, on any FastMCP server.

        @server.tool
        @resolved
        async def order_book(title: str, stock: Annotated[Stock, Resolve(check_stock)]) -> str: ...

    Called directly, as a unit test does, the function takes all its parameters as before. A function without such
    parameters is returned as it is.

    Raises:
        InvalidSignature: If the resolvers cannot be run; it names the tool, the parameter and the resolver.
    """
    return resolved_tool(fn, name_of(fn))


def resolved_tool(fn: F, tool: str) -> F:
    """`resolved`, for a tool that is called `tool`."""
    try:
        marked = marked_parameters(fn, types=FASTMCP_TYPES)
        return cast("F", _resolving(fn, marked)) if marked else fn
    except InvalidSignature as invalid:
        raise invalid.in_tool(tool) from invalid


def resolved_names(fn: object) -> frozenset[str]:
    """The parameters that a function made by `resolved` fills itself; none for anything else."""
    return resolver_plans(fn).hidden


def resolver_plans(fn: object) -> ResolverPlans:
    """How a function made by `resolved` fills its parameters; no plans for anything else."""
    return getattr(fn, RESOLVER_PLANS, NO_PLANS)


def _resolving(fn: Callable[..., Any], marked: Mapping[str, ResolvedParameter]) -> Callable[..., Any]:
    """`fn` as FastMCP is to see it: without the resolved parameters, and with a dependency that supplies them."""
    bound = bound_keywords(fn)
    parameters = {name: each for name, each in marked.items() if name not in bound}
    if returns_input_required(fn) or any(is_class_of(arm, InputRequiredToolResult) for arm in arms(read_return(fn))):
        resolvers = ", ".join(f"{name!r} by {name_of(each.marker.fn)!r}" for name, each in marked.items())
        raise InvalidSignature(
            f"it has resolvers ({resolvers}) and returns an InputRequiredResult; the rounds of a call are driven by "
            "its resolvers or by its body, not by both"
        )

    async def resolve(provided: dict[str, Any], context: Context) -> dict[str, Any] | InputRequiredResult:
        _check_is_tool(wrapper)
        arguments = {**defaults, **provided, **{alias: provided[name] for alias, name in aliases.items()}}
        host = FastMCPHost(context, provided, wrapper)
        result = await resolve_arguments(parameters, plans, arguments, host)
        return await host.ask(result) if isinstance(result, InputRequiredResult) else result

    wrapper = _wrapper(fn, _Resolution(resolve), set(marked))
    injected = get_dependency_parameters(transform_context_annotations(wrapper))
    # An unbound method's first parameter is FastMCP's to refuse or to bind; no client sends it.
    ordinary = {name: each for name, each in read_parameters(wrapper).items() if name not in {*injected, "self", "cls"}}
    defaults = {name: each.default for name, each in ordinary.items() if each.default is not each.empty}
    aliases = {alias: name for name, each in ordinary.items() for alias in _aliases(each) if alias not in ordinary}
    annotations = {name: each.annotation for name, each in read_parameters(fn).items()}
    plans = build_resolver_plans(
        parameters, {*ordinary, *aliases}, tool=key_of(fn), types=FASTMCP_TYPES, annotations=annotations
    )
    links = tuple(
        Link(name, plans[identity(each.marker.fn)].index, each.takes_outcome) for name, each in parameters.items()
    )
    setattr(wrapper, RESOLVER_PLANS, ResolverPlans(tuple(plans.values()), links, frozenset(marked)))
    return wrapper


class _Resolution(Dependency[Resolved]):
    """The dependency that supplies the values of a call's resolved parameters, or what ends the call instead."""

    def __init__(self, resolve: Callable[[dict[str, Any], Context], Awaitable[Resolved]]) -> None:
        self._resolve = resolve
        # It keeps nothing of a call, and knows the context of background tasks too.
        self._context = cast("AbstractAsyncContextManager[Context]", CurrentContext())

    async def __aenter__(self) -> Resolved:
        context = await self._context.__aenter__()
        # FastMCP would replace an exception raised here by one of its own: the function raises it instead.
        try:
            return await self._resolve(current_frame().provided, context)
        except SDKToolError as error:
            failure = ToolError(str(error))
            failure.__cause__ = error
            return failure
        except Exception as error:
            return error

    async def __aexit__(self, *exception: Any) -> None:
        await self._context.__aexit__(*exception)


def _wrapper(fn: Callable[..., Any], resolution: _Resolution, hidden: set[str]) -> Callable[..., Any]:
    """A function that looks like `fn` without the `hidden` parameters, sync or async as it is."""

    def begin(given: dict[str, Any]) -> InputRequiredResult | None:
        outcome = given.pop(RESOLUTION, {})
        if isinstance(outcome, Exception):
            raise outcome
        if isinstance(outcome, InputRequiredResult):
            return outcome
        given.update(outcome)
        return None

    if is_async(fn):

        async def wrapper(*args: Any, **kwargs: Any) -> Any:  # pyright: ignore[reportRedeclaration]
            return begin(kwargs) or _checked(await fn(*args, **kwargs))
    elif inspect.isasyncgenfunction(callee(fn)):

        async def wrapper(*args: Any, **kwargs: Any) -> Any:  # pyright: ignore[reportRedeclaration]
            return begin(kwargs) or [item async for item in fn(*args, **kwargs)]
    else:

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return begin(kwargs) or _checked(fn(*args, **kwargs))

    functools.update_wrapper(wrapper, fn)
    wrapper.__name__ = name_of(fn)
    wrapper.__doc__ = _docstring(fn)
    parameters = read_parameters(fn)
    if RESOLUTION in parameters:
        raise InvalidSignature(f"parameter {RESOLUTION!r} has a name that is taken")
    visible = [each for name, each in parameters.items() if name not in hidden]
    hidden_parameter = inspect.Parameter(RESOLUTION, inspect.Parameter.KEYWORD_ONLY, default=resolution)
    in_order = sorted([*visible, hidden_parameter], key=lambda each: each.kind)
    returned = read_return(fn)
    wrapper.__signature__ = inspect.Signature(in_order, return_annotation=returned)
    wrapper.__annotations__ = {each.name: each.annotation for each in visible if each.annotation is not each.empty}
    if returned is not inspect.Signature.empty:
        wrapper.__annotations__["return"] = returned
    return wrapper


def _docstring(fn: Callable[..., Any]) -> str | None:
    """What FastMCP takes for the description of `fn`."""
    if isinstance(fn, functools.partial) and "__doc__" in fn.__dict__:
        return fn.__doc__
    target = callee(cast("Callable[..., Any]", fn))
    return target.__doc__ if target.__doc__ or inspect.isroutine(target) else target.__call__.__doc__


def _check_is_tool(fn: Callable[..., Any]) -> None:
    """Refuse what a plain server has registered as something else, which it does without asking the function."""
    if getattr(getattr(fn, "__fastmcp__", None), "type", "tool") != "tool":
        raise InvalidSignature(f"{name_of(fn)!r} has resolvers; only tools can, not prompts and resources")


async def _checked_later(result: Awaitable[Any]) -> Any:
    return _checked(await result)


def _checked(result: Any) -> Any:
    if inspect.isawaitable(result):
        return _checked_later(result)
    if isinstance(result, InputRequiredResult | InputRequiredToolResult):
        raise ToolError(
            "The tool returned an InputRequiredResult although it has resolvers; the rounds of a call are driven by "
            "its resolvers or by its body, not by both"
        )
    return result


def _aliases(parameter: inspect.Parameter) -> list[str]:
    _, metadata = unannotated(parameter.annotation)
    fields = [each for each in (*metadata, parameter.default) if isinstance(each, FieldInfo)]
    aliases = [field.validation_alias for field in fields]
    choices = [each.choices if isinstance(each, AliasChoices) else [each] for each in aliases]
    return [alias for each in choices for alias in each if isinstance(alias, str)]
