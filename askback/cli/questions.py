"""What a resolver may ask, as its return annotation and its source tell."""

import ast
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any, Literal, get_args

from pydantic import BaseModel, PydanticUserError

from askback.cli.source import FunctionSource, Place
from askback.integration import ResolverPlan
from askback.integration.engine.annotations import arms, is_class_of, read_return
from askback.integration.engine.questions import MARKERS, Forms
from askback.markers import InvalidSignature, Sample, SDKElicit

Whom = Literal["person", "model", "directories", "anyone"]

Asked = tuple[Whom, type[Any] | None]
"""Whom a resolver asks, and by which form, where that is known."""

MODEL_ARGUMENT = 1
"""Where `Elicit(message, Model)` takes its model."""


@dataclass(frozen=True)
class QuestionCall:
    """`Elicit(...)`, `Sample(...)`, `ListRoots()`, or a call of a function that makes one, where it is written."""

    whom: Whom
    model: type[Any] | None
    """What the form is made of, where it can be looked up."""
    node: ast.Call
    source: FunctionSource
    """The function in which it is written."""

    @property
    def asked(self) -> Asked:
        """Whom it asks, and by which form."""
        return self.whom, self.model

    @property
    def message(self) -> ast.expr | None:
        """What is shown to a person."""
        return _argument(self.node, 0, "message") if self.whom == "person" else None

    @property
    def place(self) -> Place:
        """Where it is written."""
        return self.source.place(self.node)


def declared_questions(plan: ResolverPlan) -> list[Asked]:
    """Whom the return annotation says a resolver asks, and by which form; anyone, where it leaves that open."""
    return annotated_questions(plan.fn) or ([("anyone", None)] if plan.may_elicit else [])


def annotated_questions(fn: Callable[..., Any]) -> list[Asked]:
    """The questions in a return annotation, where it can be read."""
    # It may name what was there only while the tool was registered.
    with contextlib.suppress(InvalidSignature):
        return [
            (_whom(arm), next((model for model in get_args(arm) if is_class_of(model, BaseModel)), None))
            for arm in arms(read_return(fn))
            if is_class_of(arm, MARKERS)
        ]
    return []


def written_questions(source: FunctionSource, within: frozenset[Any] = frozenset()) -> Iterator[QuestionCall]:
    """The questions that are written in a function, and in those it calls whose return annotation says they ask."""
    for call in source.calls():
        called = source.stands_for(call.func)
        if is_class_of(called, MARKERS):
            model = source.stands_for(_argument(call, MODEL_ARGUMENT, "schema"))
            yield QuestionCall(_whom(called), model if isinstance(model, type) else None, call, source)
        elif (
            isinstance(called, FunctionType | MethodType)
            and called not in within
            and (questions := annotated_questions(called))
        ):
            yield from (QuestionCall(whom, model, call, source) for whom, model in questions)
            yield from written_questions(FunctionSource(called), within | {called})


def _whom(marker: Any) -> Whom:
    if is_class_of(marker, SDKElicit):
        return "person"
    return "model" if is_class_of(marker, Sample) else "directories"


def models_asked(plan: ResolverPlan, source: FunctionSource) -> dict[type[Any], Place]:
    """The models a resolver may ask for, and where it does."""
    declared = {model: source.place() for _, model in declared_questions(plan) if model is not None}
    return declared | {each.model: each.place for each in written_questions(source) if each.model is not None}


def form_of(model: type[Any]) -> dict[str, Any] | str:
    """The schema of a model's form, or why the protocol cannot ask for it."""
    try:
        return Forms().of(model).schema
    except (TypeError, PydanticUserError) as error:
        return str(error)


def _argument(call: ast.Call, index: int, name: str) -> ast.expr | None:
    named = (each.value for each in call.keywords if each.arg == name)
    return call.args[index] if index < len(call.args) else next(named, None)
