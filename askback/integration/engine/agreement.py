"""Whether what a resolver gives can be what its consumer is annotated to take."""

from abc import ABCMeta
from collections.abc import Iterator
from enum import IntEnum
from inspect import Signature
from types import NoneType
from typing import Any, Literal, cast, get_args, get_origin, is_typeddict

from mcp_types import CreateMessageResult, CreateMessageResultWithTools, ListRootsResult
from pydantic import BaseModel

from askback.integration.engine.annotations import arms, is_class_of
from askback.integration.engine.host import HostTypes
from askback.markers import ListRoots, Sample, SDKElicit

PROMOTED = ((int, float), (int, complex), (float, complex))
"""What a type checker takes for another class although it is not a subclass."""


class Agreement(IntEnum):
    """How far two annotations agree."""

    NEVER = 0
    DOUBTFUL = 1
    AGREED = 2


def agreement(taken: Any, returned: Any, types: HostTypes) -> Agreement:
    """How far a parameter annotated `taken` agrees with a resolver that is annotated to return `returned`.

    An annotation that says nothing agrees with everything. `DOUBTFUL` means that some of what the resolver may give is
    not what the parameter is annotated to take.
    """
    wanted = list(_values_of(taken, types))
    found = [_best(answer, wanted, is_exact=True) for answer in _answers_of(returned)]
    found += [_best(value, wanted, is_exact=False) for value in _values_of(returned, types)]
    if not wanted or not found or min(found) is Agreement.AGREED:
        return Agreement.AGREED
    return Agreement.NEVER if max(found) is Agreement.NEVER else Agreement.DOUBTFUL


def _answers_of(returned: Any) -> Iterator[Any]:
    """What the questions of a return annotation are answered with."""
    for arm in arms(returned):
        if is_class_of(arm, SDKElicit):
            yield from get_args(arm)
        elif is_class_of(arm, Sample):
            yield CreateMessageResult | CreateMessageResultWithTools
        elif is_class_of(arm, ListRoots):
            yield ListRootsResult


def _values_of(annotation: Any, types: HostTypes) -> Iterator[Any]:
    """What an annotation stands for besides questions, without the outcome around it."""
    for arm in arms(annotation):
        if is_class_of(arm, types.outcomes):
            accepted = arm.model_fields.get("data")
            yield from arms(accepted.annotation) if accepted is not None else ()
        elif not is_class_of(arm, (SDKElicit, Sample, ListRoots)):
            yield arm


def _best(given: Any, wanted: list[Any], *, is_exact: bool) -> Agreement:
    pairs = [_agrees(each, want, is_exact) for each in arms(given) for want in wanted]
    return max(pairs, default=Agreement.AGREED)


def _agrees(given: Any, wanted: Any, is_exact: bool) -> Agreement:
    given_class, wanted_class = _class_of(given), _class_of(wanted)
    if given_class is None or wanted_class is None:
        return Agreement.AGREED
    if issubclass(given_class, wanted_class) or (given_class, wanted_class) in PROMOTED:
        return Agreement.AGREED
    # An answer is an instance of just the model that was asked for. A value may be one of some subclass of both.
    may_share_subclass = issubclass(wanted_class, given_class) or not _is_solid(given_class, wanted_class)
    return Agreement.DOUBTFUL if may_share_subclass and not is_exact else Agreement.NEVER


def _is_solid(one: type, other: type) -> bool:
    """Whether Python lays instances of the two out so differently that no class can inherit from both."""
    builtin = [each.__module__ == "builtins" for each in (one, other)]
    return any(builtin) and all(
        is_builtin or issubclass(each, BaseModel) for is_builtin, each in zip(builtin, (one, other), strict=True)
    )


def _class_of(annotation: Any) -> type[Any] | None:
    """The class whose instances an annotation means; None where that cannot be told from the class."""
    if annotation is None:
        return NoneType
    if get_origin(annotation) is Literal:
        kinds: set[type] = {type(value) for value in get_args(annotation)}
        return kinds.pop() if len(kinds) == 1 else None
    if is_typeddict(annotation):
        return dict
    candidate: Any = get_origin(annotation) or annotation
    if not isinstance(candidate, type) or candidate in (object, Any, Signature.empty):
        return None
    # Anything can be registered as a subclass of an abstract class. Pydantic's models are only made like one.
    is_abstract = isinstance(candidate, ABCMeta) and not issubclass(candidate, BaseModel)
    return None if is_abstract else cast("type[Any]", candidate)
