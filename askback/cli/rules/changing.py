"""Questions and defaults that come out differently each time: a clock, a random number, an id made in the call."""

import ast
import datetime
import os
import random
import secrets
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from askback.cli.findings import Finding
from askback.cli.questions import form_of, models_asked, written_questions
from askback.cli.servers import LoadedServer
from askback.cli.source import FunctionSource

IN_MODULES: tuple[tuple[object, tuple[str, ...]], ...] = (
    (time, ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns")),
    (time, ("process_time", "process_time_ns", "thread_time", "thread_time_ns")),
    (uuid, ("uuid1", "uuid4", "uuid6", "uuid7")),
    (secrets, ("token_bytes", "token_hex", "token_urlsafe", "randbelow")),
    (os, ("urandom", "getpid", "times")),
    (threading, ("get_ident", "get_native_id")),
    (tempfile, ("mkdtemp", "mkstemp", "mktemp")),
)
CHANGING = [
    id,
    random.SystemRandom,
    *(getattr(module, name) for module, names in IN_MODULES for name in names if hasattr(module, name)),
]

FIXED_BY_ARGUMENTS: Sequence[tuple[Callable[..., Any], int]] = (
    (time.localtime, 1),
    (time.gmtime, 1),
    (time.ctime, 1),
    (time.asctime, 1),
    (time.strftime, 2),
    (random.Random, 1),
)
"""What gives the same each time, if it is given so many arguments."""

NOW = frozenset({"now", "utcnow", "today"})


FOR_EVER = (
    "An answer counts only for exactly what was asked, so this is asked for ever: leave that out of the question, or "
    "take it from an argument of the tool."
)


def changing_questions(server: LoadedServer) -> Iterator[Finding]:
    """Questions that are put differently in each round."""
    for tool in server.tools:
        made_by: list[str | None] = []
        for plan in tool.resolved.plans:
            source = FunctionSource(plan.fn)
            changing = {
                name: f"{culprit} of the resolver {tool.resolved.plans[index].name!r}"
                for name, index, _ in plan.dependencies
                if (culprit := made_by[index])
            }
            reader = _Reader(source, changing)
            questions = list(written_questions(source))
            asked = {id(each.node) for each in questions}
            made_by.append(_first(reader.culprit(each) for each in source.returned() if id(each) not in asked))
            for question in questions:
                parts = [*question.node.args, *(each.value for each in question.node.keywords)]
                written_in = reader if question.source is source else _Reader(question.source, {})
                if culprit := _first(map(written_in.culprit, parts)):
                    problem = f"The question contains {culprit}, which is something else in every round."
                    yield Finding("changing-question", (tool.name,), plan.name, question.place, problem, FOR_EVER)
            for model, place in models_asked(plan, source).items():
                if form_of(model) != form_of(model):
                    problem = f"The form of {model.__name__} comes out differently each time it is made."
                    yield Finding("changing-question", (tool.name,), plan.name, place, problem, FOR_EVER)


def changing_defaults(server: LoadedServer) -> Iterator[Finding]:
    """Fields of forms whose default is made anew in each round, for as long as nobody fills them in."""
    for tool, plan in server.resolvers:
        source = FunctionSource(plan.fn)
        for model, place in models_asked(plan, source).items():
            fields = model.model_fields.items() if issubclass(model, BaseModel) else ()
            for name, field in fields:
                if culprit := _made_by(field.default_factory):
                    yield Finding(
                        "changing-default",
                        (tool.name,),
                        plan.name,
                        place,
                        f"Left out of an answer, {name!r} of {model.__name__} is {culprit}, which is something else in "
                        "every round.",
                        "Resolvers run again in every round: make such a value once, in the body of the tool.",
                    )


class _Reader:
    """Reads what changes from round to round in the expressions of a function."""

    def __init__(self, source: FunctionSource, changing: Mapping[str, str]) -> None:
        self._source = source
        self._changing = dict(changing)
        while found := {
            name: culprit
            for name, values in source.assigned.items()
            if name not in self._changing and (culprit := _first(map(self.culprit, values)))
        }:
            self._changing |= found

    def culprit(self, expression: ast.AST) -> str | None:
        """What in an expression changes, if anything does."""
        for node in ast.walk(expression):
            if isinstance(node, ast.Name) and node.id in self._changing:
                return self._changing[node.id]
            if isinstance(node, ast.Call):
                called = self._source.stands_for(node.func)
                if _changes(called, len(node.args) + len(node.keywords)):
                    return f"{ast.unparse(node.func)}()"
        return None


def _made_by(factory: Callable[..., Any] | None) -> str | None:
    if factory is None:
        return None
    if _changes(factory, 0):
        return f"{factory.__name__}()"
    source = FunctionSource(factory)
    return _Reader(source, {}).culprit(source.node) if source.node is not None else None


def _changes(called: Any, arguments: int) -> bool:
    """Whether a call of `called` with so many arguments gives something else each time."""
    if any(called is each for each in CHANGING):
        return True
    if any(called is each and arguments < enough for each, enough in FIXED_BY_ARGUMENTS):
        return True
    bound_to = getattr(called, "__self__", None)
    is_date = isinstance(bound_to, type) and issubclass(bound_to, datetime.date)
    return isinstance(bound_to, random.Random) or (is_date and called.__name__ in NOW)


def _first(culprits: Iterable[str | None]) -> str | None:
    return next((each for each in culprits if each), None)
