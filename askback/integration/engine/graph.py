"""The graph of a tool's resolvers, worked out when the tool is registered."""

import inspect
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar, get_args

from mcp_types import InputRequiredResult
from pydantic import BaseModel, PydanticUserError
from uncalled_for import Dependency, Provider

from askback.integration.engine.agreement import Agreement, agreement
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
from askback.integration.engine.questions import MARKERS, RenderedForms
from askback.markers import InvalidSignature, SDKElicit, SDKResolve

SDK_TYPES = HostTypes()


class ResolvedParameter(NamedTuple):
    """A parameter that a resolver fills."""

    marker: SDKResolve
    takes_outcome: bool
    """Whether it takes the whole outcome of a question rather than the value inside."""


class ContextParameter(NamedTuple):
    """A resolver's parameter that gets the host's context."""

    name: str
    kind: type


class Link(NamedTuple):
    """A resolver's parameter that another resolver fills."""

    name: str
    resolver: int
    """The index of the resolver that fills it."""
    takes_outcome: bool


@dataclass(frozen=True)
class ResolverGraph:
    """What all resolvers of one tool share."""

    tool: str
    types: HostTypes
    forms: RenderedForms = field(default_factory=RenderedForms)

    @cached_property
    def outcomes(self) -> frozenset[type]:
        """The classes of outcomes, to look for among those of a value."""
        return frozenset(self.types.outcomes)


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
    contexts: tuple[ContextParameter, ...]
    links: tuple[Link, ...]
    waits_for: int
    """How many resolvers have to be done before it can run."""
    dependents: tuple[int, ...]
    required_as: str | None
    """The first parameter that cannot do without its value: one that takes the value, not the outcome."""
    graph: ResolverGraph


def find_resolved_parameters(fn: Callable[..., Any], *, types: HostTypes = SDK_TYPES) -> dict[str, ResolvedParameter]:
    """Find the parameters of `fn` annotated `Annotated[T, Resolve(resolver)]`.

    Each is mapped to its marker, and to whether it takes the whole outcome (`T` is `ElicitationResult` or a member of
    it) rather than the value inside. A parameter that `functools.partial` has bound is not among them: what its author
    bound it to counts.

    Raises:
        InvalidSignature: If a marker is somewhere it has no effect, or an annotation cannot be read.
    """
    bound = bound_keywords(fn)
    return {name: each for name, each in marked_parameters(fn, types=types).items() if name not in bound}


def marked_parameters(fn: Callable[..., Any], *, types: HostTypes) -> dict[str, ResolvedParameter]:
    """All parameters of `fn` that have a marker, including those that `functools.partial` has bound.

    Raises:
        InvalidSignature: As `find_resolved_parameters` does.
    """
    found: dict[str, ResolvedParameter] = {}
    for name, parameter in read_parameters(fn).items():
        marker = _marker(parameter, types, _Place(name).of(fn))
        if marker is not None:
            found[name] = ResolvedParameter(marker, _takes_outcome(parameter.annotation, types))
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
    annotations: Mapping[str, Any] | None = None,
) -> dict[Hashable, ResolverPlan]:
    """Analyse the resolvers behind a tool's parameters, and those behind them.

    `tool_arg_names` are the tool's ordinary arguments, which resolvers may take by name. `tool` is what the tool is
    called: answers remembered for one tool are never another's. With `annotations`, those of the resolved parameters,
    each is checked against what its resolver returns. The plans are keyed by `identity` of the resolver, in depth-first
    declaration order.

    Raises:
        InvalidSignature: If resolvers depend on each other in a circle, a resolver has a parameter that nothing can
            fill, declares more than one question or one that cannot be asked, shares its key with another, or can
            never give what its consumer is annotated to take.
    """
    analysis = _Analysis(tool_arg_names, ResolverGraph(tool, types))
    for name, (marker, takes_outcome) in resolved_params.items():
        annotation = (annotations or {}).get(name, Any)
        analysis.consume(marker, name, annotation, takes_outcome, (), _Place(name))
    return analysis.plans()


def identity(fn: Callable[..., Any]) -> Hashable:
    """What makes two mentions of a resolver the same one: a bound method is a new object at each mention."""
    bound_to = getattr(fn, "__self__", None)
    if bound_to is None:
        return id(fn)
    function = getattr(fn, "__func__", None)
    return fn.__name__ if function is None else id(function), id(bound_to)


@dataclass(frozen=True)
class _Place:
    """Where in a tool's annotations a problem is, for people and for programs."""

    parameter: str
    resolver: str | None = None
    path: str = ""

    def __str__(self) -> str:
        return f"parameter {self.parameter!r}{self.path}"

    def of(self, fn: Callable[..., Any]) -> "_Place":
        return _Place(self.parameter, self.resolver, f" of {name_of(fn)!r}")

    def at_resolver(self, fn: Callable[..., Any]) -> "_Place":
        return _Place(self.parameter, name_of(fn), f"{self.path}, resolver {name_of(fn)!r}")

    def at_its_parameter(self, name: str) -> "_Place":
        return _Place(self.parameter, self.resolver, f"{self.path}, its parameter {name!r}")

    def refuse(self, reason: str) -> InvalidSignature:
        return InvalidSignature(reason, parameter=self.parameter, resolver=self.resolver, where=str(self))


@dataclass
class _Draft:
    """A resolver under analysis."""

    fn: Callable[..., Any]
    place: _Place
    returned: Any
    may_elicit: bool
    arguments: tuple[str, ...]
    contexts: tuple[ContextParameter, ...]
    links: list[tuple[str, Hashable, bool]]
    chosen_key: str | None = None
    required_as: str | None = None


class _Analysis:
    def __init__(self, tool_arg_names: set[str], graph: ResolverGraph) -> None:
        self._tool_arg_names = tool_arg_names
        self._graph = graph
        self._drafts: dict[Hashable, _Draft] = {}

    def consume(
        self,
        marker: SDKResolve,
        parameter: str,
        annotation: Any,
        takes_outcome: bool,
        path: tuple[Any, ...],
        place: _Place,
    ) -> Hashable:
        """Note that `parameter` is filled by a resolver, after everything the resolver itself depends on."""
        fn = marker.fn
        resolver = identity(fn)
        at_resolver = place.at_resolver(fn)
        if resolver in (identity(outer) for outer in path):
            circle = " -> ".join(name_of(each) for each in (*path, fn))
            raise at_resolver.refuse(f"it depends on itself: {circle}")
        if resolver not in self._drafts:
            self._drafts[resolver] = self._draft(fn, path, at_resolver)
        draft = self._drafts[resolver]
        if agreement(annotation, draft.returned, self._graph.types) is Agreement.NEVER:
            raise at_resolver.refuse(
                f"it returns {_shown(draft.returned)}, which can never be the {_shown(unannotated(annotation)[0])} "
                "that the parameter is annotated to take"
            )
        key: str | None = getattr(marker, "key", None)
        if key is not None:
            if draft.chosen_key not in (None, key):
                raise at_resolver.refuse(f"it has two keys, {draft.chosen_key!r} and {key!r}; give it one")
            draft.chosen_key = key
        if not takes_outcome and draft.required_as is None:
            draft.required_as = parameter
        return resolver

    def plans(self) -> dict[Hashable, ResolverPlan]:
        numbers = {resolver: index for index, resolver in enumerate(self._drafts)}
        keys = self._keys()
        dependents: dict[Hashable, dict[int, None]] = {resolver: {} for resolver in self._drafts}
        for resolver, draft in self._drafts.items():
            for _, dependency, _ in draft.links:
                dependents[dependency][numbers[resolver]] = None
        return {
            resolver: ResolverPlan(
                index=numbers[resolver],
                fn=draft.fn,
                name=name_of(draft.fn),
                key=keys[resolver],
                is_async=is_async(draft.fn),
                may_elicit=draft.may_elicit,
                arguments=draft.arguments,
                contexts=draft.contexts,
                links=tuple(Link(name, numbers[linked], takes_outcome) for name, linked, takes_outcome in draft.links),
                waits_for=len({linked for _, linked, _ in draft.links}),
                dependents=tuple(dependents[resolver]),
                required_as=draft.required_as,
                graph=self._graph,
            )
            for resolver, draft in self._drafts.items()
        }

    def _keys(self) -> dict[Hashable, str]:
        """The resolvers' keys: those that were chosen, and for the others, where in the code they are."""
        keys: dict[Hashable, str] = {}
        chosen_by: dict[str, _Draft] = {}
        for resolver, draft in self._drafts.items():
            key = draft.chosen_key
            if key is None:
                continue
            if key in chosen_by:
                raise draft.place.refuse(f"its key {key!r} is also the key of {name_of(chosen_by[key].fn)!r}")
            chosen_by[key] = draft
            keys[resolver] = key
        taken: dict[str, int] = dict.fromkeys(chosen_by, 1)
        for resolver, draft in self._drafts.items():
            if draft.chosen_key is None:
                key = key_of(draft.fn)
                number = taken.get(key, 0)
                taken[key] = number + 1
                keys[resolver] = f"{key}#{number}" if number else key
        return keys

    def _draft(self, fn: Callable[..., Any], path: tuple[Any, ...], place: _Place) -> _Draft:
        if is_generator(fn):
            raise place.refuse("it yields; a resolver returns its value")
        try:
            parameters, returned = read_parameters(fn), read_return(fn)
        except InvalidSignature as unreadable:
            raise place.refuse(unreadable.reason) from unreadable
        may_elicit = self._may_elicit(returned, place)

        arguments: list[str] = []
        contexts: list[ContextParameter] = []
        links: list[tuple[str, Hashable, bool]] = []
        bound = bound_keywords(fn)
        for name, parameter in parameters.items():
            if name in bound:
                continue
            its_parameter = place.at_its_parameter(name)
            marker = _marker(parameter, self._graph.types, its_parameter)
            context = _context_kind(parameter.annotation, self._graph.types)
            if marker is not None:
                takes_outcome = _takes_outcome(parameter.annotation, self._graph.types)
                linked = self.consume(marker, name, parameter.annotation, takes_outcome, (*path, fn), its_parameter)
                links.append((name, linked, takes_outcome))
            elif _filled_by_name(parameter) and context is not None:
                contexts.append(ContextParameter(name, context))
            elif _filled_by_name(parameter) and name in self._tool_arg_names:
                arguments.append(name)
            else:
                known = ", ".join(sorted(self._tool_arg_names)) or "none"
                raise its_parameter.refuse(
                    "nothing can fill it. A parameter of a resolver is a Context, an Annotated[T, Resolve(...)], or "
                    f"named like an argument of the tool ({known}), and can be passed by name"
                )
        return _Draft(fn, place, returned, may_elicit, tuple(arguments), tuple(contexts), links)

    def _may_elicit(self, returned: Any, place: _Place) -> bool:
        """Whether a resolver may ask a person, by its return annotation. Declared forms are rendered here already."""
        declared = {arm for arm in arms(returned) if is_class_of(arm, MARKERS)}
        if len(declared) > 1:
            raise place.refuse(
                f"its return annotation declares {len(declared)} questions (Elicit, Sample, ListRoots); a resolver "
                "asks one, so make it two resolvers"
            )
        elicits = [arm for arm in declared if is_class_of(arm, SDKElicit)]
        for model in (argument for arm in elicits for argument in get_args(arm)):
            # These say that it depends on the call. `Any` is a class on some versions of Python.
            if model is Any or model is BaseModel or isinstance(model, TypeVar):
                continue
            try:
                self._graph.forms.of(model)
            except (TypeError, PydanticUserError) as error:
                raise place.refuse(f"it cannot ask for {_shown(model)}: {error}") from error
        says_nothing = any(
            arm in (inspect.Signature.empty, Any, object) or isinstance(arm, TypeVar) for arm in arms(returned)
        )
        return bool(elicits) or says_nothing


def _marker(parameter: inspect.Parameter, types: HostTypes, place: _Place) -> SDKResolve | None:
    """The marker of a parameter, checked to be the only thing that fills it."""
    base, metadata = unannotated(parameter.annotation)
    markers = [each for each in metadata if isinstance(each, SDKResolve)]
    if isinstance(parameter.default, SDKResolve) or any(is_class_of(each, SDKResolve) for each in metadata):
        raise place.refuse("write the marker as Annotated[T, Resolve(resolver)]")
    within = [each for each in metadata_within(parameter.annotation) if isinstance(each, SDKResolve)]
    if len(within) > len(markers):
        buried = name_of(within[len(markers)].fn)
        raise place.refuse(
            f"Resolve({buried}) is inside a union or a container; annotate the parameter itself, as "
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
        raise place.refuse(f"Resolve({name_of(markers[0].fn)}) is not the only thing that would fill it")
    if not _filled_by_name(parameter):
        raise place.refuse("a resolved parameter must be one that can be passed by name")
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


def _shown(annotation: Any) -> str:
    """An annotation as its author wrote it, more or less."""
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)
