"""The graph of a tool's resolvers, worked out when the tool is registered."""

import inspect
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

from mcp_types import InputRequiredResult
from pydantic import PydanticUserError
from uncalled_for import Dependency, Provider

from askback.integration.engine.annotations import (
    arms,
    bound_keywords,
    is_async,
    is_class_of,
    is_generator,
    key_of,
    metadata_within,
    name_of,
    read_parameters,
    read_return,
    unannotated,
)
from askback.integration.engine.host import HostTypes
from askback.integration.engine.questions import MARKERS, Forms
from askback.markers import InvalidSignature, SDKElicit, SDKResolve

SDK_TYPES = HostTypes()


@dataclass(frozen=True)
class ResolverGraph:
    """What all resolvers of one tool share."""

    tool: str
    types: HostTypes
    forms: Forms


@dataclass(frozen=True, slots=True)
class ResolverPlan:
    """How to run one resolver, decided before any call.

    Plans are numbered in depth-first declaration order: the order in which a reader meets them, dependencies first.
    """

    index: int
    fn: Callable[..., Any]
    name: str
    key: str
    """Its name on the wire, the same in every worker."""
    is_async: bool
    may_elicit: bool
    """Whether it may ask a person, as far as its return annotation tells."""
    arguments: tuple[str, ...]
    """Parameters filled with the tool's argument of the same name."""
    contexts: tuple[tuple[str, type], ...]
    """Parameters filled with the host's context, and the kind of context."""
    dependencies: tuple[tuple[str, int, bool], ...]
    """Parameters filled by another resolver, which one, and whether they take the outcome rather than the value."""
    waits_for: int
    """How many resolvers have to be done before it can run."""
    dependents: tuple[int, ...]
    required_as: str | None
    """The first parameter that cannot do without its value: one that takes the value, not the outcome."""
    graph: ResolverGraph


def find_resolved_parameters(
    fn: Callable[..., Any], *, types: HostTypes = SDK_TYPES
) -> dict[str, tuple[SDKResolve, bool]]:
    """Find the parameters of `fn` annotated `Annotated[T, Resolve(resolver)]`.

    Each is mapped to its marker, and to whether it takes the whole outcome (`T` is `ElicitationResult` or a member of
    it) rather than the value inside.

    Raises:
        InvalidSignature: If a marker stands where it cannot be honoured, or an annotation cannot be read.
    """
    found: dict[str, tuple[SDKResolve, bool]] = {}
    for name, parameter in read_parameters(fn).items():
        marker = _marker(parameter, types, f"parameter {name!r} of {name_of(fn)!r}")
        if marker is not None:
            found[name] = (marker, _takes_outcome(parameter.annotation, types))
    return found


def returns_input_required(fn: Callable[..., Any]) -> bool:
    """Whether the return annotation of `fn` has an `InputRequiredResult` arm, through `Annotated`, aliases and unions.

    Such a function drives the rounds of its call itself and can have no resolvers: a call has one `request_state`.

    Raises:
        InvalidSignature: If the return annotation cannot be read.
    """
    return any(is_class_of(arm, InputRequiredResult) for arm in arms(read_return(fn)))


def build_resolver_plans(
    resolved_params: Mapping[str, tuple[SDKResolve, bool]],
    tool_arg_names: set[str],
    *,
    tool: str = "",
    types: HostTypes = SDK_TYPES,
) -> dict[Hashable, ResolverPlan]:
    """Analyse the resolvers behind a tool's parameters, and those behind them.

    `tool_arg_names` are the tool's ordinary arguments, which resolvers may take by name. `tool` is what the tool is
    called: answers remembered for one tool are never another's. The plans are keyed by `identity` of the resolver, in
    depth-first declaration order.

    Raises:
        InvalidSignature: If resolvers depend on each other in a circle, a resolver has a parameter that nothing can
            fill, or it declares more than one question.
    """
    analysis = _Analysis(tool_arg_names, ResolverGraph(tool, types, Forms()))
    for name, (marker, takes_outcome) in resolved_params.items():
        analysis.consume(marker.fn, name, takes_outcome, (), f"parameter {name!r}")
    return analysis.plans()


def identity(fn: Callable[..., Any]) -> Hashable:
    """What makes two mentions of a resolver the same one: a bound method is a new object at each mention."""
    bound_to = getattr(fn, "__self__", None)
    if bound_to is None:
        return id(fn)
    function = getattr(fn, "__func__", None)
    return fn.__name__ if function is None else id(function), id(bound_to)


@dataclass
class _Draft:
    """A resolver under analysis."""

    fn: Callable[..., Any]
    key: str
    may_elicit: bool
    arguments: tuple[str, ...]
    contexts: tuple[tuple[str, type], ...]
    dependencies: list[tuple[str, Hashable, bool]]
    required_as: str | None = None


class _Analysis:
    def __init__(self, tool_arg_names: set[str], graph: ResolverGraph) -> None:
        self._tool_arg_names = tool_arg_names
        self._graph = graph
        self._drafts: dict[Hashable, _Draft] = {}
        self._keys_taken: dict[str, int] = {}

    def consume(
        self, fn: Callable[..., Any], parameter: str, takes_outcome: bool, path: tuple[Any, ...], where: str
    ) -> Hashable:
        """Note that `parameter` is filled by `fn`, after everything `fn` itself depends on."""
        resolver = identity(fn)
        if resolver in (identity(outer) for outer in path):
            circle = " -> ".join(name_of(each) for each in (*path, fn))
            raise InvalidSignature(f"{where}: the resolver {name_of(fn)!r} depends on itself: {circle}")
        if resolver not in self._drafts:
            self._drafts[resolver] = self._draft(fn, path, f"{where}, resolver {name_of(fn)!r}")
        draft = self._drafts[resolver]
        if not takes_outcome and draft.required_as is None:
            draft.required_as = parameter
        return resolver

    def plans(self) -> dict[Hashable, ResolverPlan]:
        numbers = {resolver: index for index, resolver in enumerate(self._drafts)}
        dependents: dict[Hashable, dict[int, None]] = {resolver: {} for resolver in self._drafts}
        for resolver, draft in self._drafts.items():
            for _, dependency, _ in draft.dependencies:
                dependents[dependency][numbers[resolver]] = None
        return {
            resolver: ResolverPlan(
                index=numbers[resolver],
                fn=draft.fn,
                name=name_of(draft.fn),
                key=draft.key,
                is_async=is_async(draft.fn),
                may_elicit=draft.may_elicit,
                arguments=draft.arguments,
                contexts=draft.contexts,
                dependencies=tuple(
                    (name, numbers[dependency], takes_outcome) for name, dependency, takes_outcome in draft.dependencies
                ),
                waits_for=len({dependency for _, dependency, _ in draft.dependencies}),
                dependents=tuple(dependents[resolver]),
                required_as=draft.required_as,
                graph=self._graph,
            )
            for resolver, draft in self._drafts.items()
        }

    def _draft(self, fn: Callable[..., Any], path: tuple[Any, ...], where: str) -> _Draft:
        key = self._unique(key_of(fn))
        if is_generator(fn):
            raise InvalidSignature(f"{where}: it yields; a resolver returns its value")
        try:
            parameters, returned = read_parameters(fn), read_return(fn)
        except InvalidSignature as unreadable:
            raise InvalidSignature(f"{where}: {unreadable}") from unreadable
        may_elicit = self._may_elicit(returned, where)

        arguments: list[str] = []
        contexts: list[tuple[str, type]] = []
        dependencies: list[tuple[str, Hashable, bool]] = []
        bound = bound_keywords(fn)
        for name, parameter in parameters.items():
            if name in bound:
                continue
            place = f"{where}, its parameter {name!r}"
            marker = _marker(parameter, self._graph.types, place)
            context = _context_kind(parameter.annotation, self._graph.types)
            if marker is not None:
                takes_outcome = _takes_outcome(parameter.annotation, self._graph.types)
                resolver = self.consume(marker.fn, name, takes_outcome, (*path, fn), place)
                dependencies.append((name, resolver, takes_outcome))
            elif _filled_by_name(parameter) and context is not None:
                contexts.append((name, context))
            elif _filled_by_name(parameter) and name in self._tool_arg_names:
                arguments.append(name)
            else:
                known = ", ".join(sorted(self._tool_arg_names)) or "none"
                raise InvalidSignature(
                    f"{place}: nothing can fill it. A parameter of a resolver is a Context, an Annotated[T, "
                    f"Resolve(...)], or named like an argument of the tool ({known}), and can be passed by name"
                )
        return _Draft(fn, key, may_elicit, tuple(arguments), tuple(contexts), dependencies)

    def _may_elicit(self, returned: Any, where: str) -> bool:
        """Whether a resolver may ask a person, by its return annotation. Declared forms are rendered here already."""
        declared = {arm for arm in arms(returned) if is_class_of(arm, MARKERS)}
        if len(declared) > 1:
            raise InvalidSignature(
                f"{where}: its return annotation declares {len(declared)} questions (Elicit, Sample, ListRoots); a "
                "resolver asks one, so make it two resolvers"
            )
        elicits = [arm for arm in declared if is_class_of(arm, SDKElicit)]
        for model in (argument for arm in elicits for argument in get_args(arm)):
            # `Any` and type variables say that it depends; it is a class on some versions of Python, too.
            if model is Any or not isinstance(model, type):
                continue
            try:
                self._graph.forms.of(model)
            except (TypeError, PydanticUserError) as error:
                raise InvalidSignature(f"{where}: it cannot ask for {model.__name__}: {error}") from error
        says_nothing = any(
            arm in (inspect.Signature.empty, Any, object) or isinstance(arm, TypeVar) for arm in arms(returned)
        )
        return bool(elicits) or says_nothing

    def _unique(self, key: str) -> str:
        number = self._keys_taken.get(key, 0)
        self._keys_taken[key] = number + 1
        return f"{key}#{number}" if number else key


def _marker(parameter: inspect.Parameter, types: HostTypes, where: str) -> SDKResolve | None:
    """The marker of a parameter, checked to be the only thing that fills it."""
    base, metadata = unannotated(parameter.annotation)
    markers = [each for each in metadata if isinstance(each, SDKResolve)]
    if isinstance(parameter.default, SDKResolve) or any(is_class_of(each, SDKResolve) for each in metadata):
        raise InvalidSignature(f"{where}: write the marker as Annotated[T, Resolve(resolver)]")
    buried = [each for each in metadata_within(parameter.annotation) if isinstance(each, SDKResolve)]
    if len(buried) > len(markers):
        name = next(name_of(each.fn) for each in buried if all(each is not marker for marker in markers))
        raise InvalidSignature(
            f"{where}: Resolve({name}) stands inside a union or a container; annotate the parameter itself, as "
            "Annotated[T, Resolve(...)]"
        )
    if not markers:
        return None
    has_rival = (
        len(markers) > 1
        or isinstance(parameter.default, Dependency)
        or _context_kind(base, types) is not None
        or any(_supplies_a_value(each) for each in metadata if each is not markers[0])
    )
    if has_rival:
        raise InvalidSignature(f"{where}: Resolve({name_of(markers[0].fn)}) is not the only thing that would fill it")
    if not _filled_by_name(parameter):
        raise InvalidSignature(f"{where}: a resolved parameter must be one that can be passed by name")
    return markers[0]


def _supplies_a_value(metadata: Any) -> bool:
    return isinstance(metadata, Provider) or is_class_of(metadata, Provider)


def _filled_by_name(parameter: inspect.Parameter) -> bool:
    return parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)


def _takes_outcome(annotation: Any, types: HostTypes) -> bool:
    return any(is_class_of(arm, types.outcomes) for arm in arms(annotation))


def _context_kind(annotation: Any, types: HostTypes) -> type | None:
    found = list(arms(annotation))
    return next((kind for kind in types.contexts if any(is_class_of(arm, kind) for arm in found)), None)
