"""Questions and defaults that come out differently each time: a clock, a random number, an id made in the call."""

import ast
import datetime
import inspect
import os
import random
import secrets
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import FunctionType, MethodType
from typing import Any, cast

from pydantic import BaseModel

from askback.cli.findings import Finding
from askback.cli.questions import form_of, models_asked, written_questions
from askback.cli.servers import LoadedServer
from askback.cli.source import UNKNOWN, FunctionSource, is_library
from askback.integration.engine.annotations import is_class_of
from askback.integration.engine.questions import MARKERS

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
    object,
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

SHOWING = frozenset({"format", "format_map", "join", "replace"})
"""The methods of texts that put their arguments in."""

LEVELS = 3
"""How many functions deep something that changes is looked for."""

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
                for name, index, _ in plan.links
                if (culprit := made_by[index])
            }
            reader = _Reader(source, changing)
            made_by.append(reader.returned())
            for question in written_questions(source):
                parts = [*question.node.args, *(each.value for each in question.node.keywords)]
                written_in = reader if question.source is source else _Reader(question.source, {})
                if culprit := _first(map(written_in.culprit, parts)):
                    problem = f"The question contains {culprit}, which may be something else in the next round."
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
                        f"Left out of an answer, {name!r} of {model.__name__} is {culprit}, which may be something "
                        "else in the next round.",
                        "Resolvers run again in every round: make such a value once, in the body of the tool.",
                    )


class _Reader:
    """Reads what changes from round to round in the expressions of a function, and in the functions that it calls.

    A value changes if a part of it does. A call is no part of its own result: `fetch(order_id, as_of=now())` looks an
    order up. So what changes in an argument counts where the call shows it or keeps it: in a class, a function of the
    standard library, `format`, `join` or `replace`, or a function whose own source returns it.
    """

    def __init__(
        self, source: FunctionSource, changing: Mapping[str, str], within: frozenset[Callable[..., Any]] = frozenset()
    ) -> None:
        self._source = source
        self._changing = dict(changing)
        self._within = within
        while found := {
            name: culprit
            for name, values in source.assigned.items()
            if name not in self._changing and (culprit := _first(map(self.culprit, values)))
        }:
            self._changing |= found

    def returned(self) -> str | None:
        """What changes in what the function returns. Of a question that is the answer, which does not."""
        return _first(map(self.culprit, self._source.returned()))

    def culprit(self, expression: ast.AST) -> str | None:
        """What in an expression changes, if anything does."""
        if isinstance(expression, ast.Name):
            return self._changing.get(expression.id)
        if isinstance(expression, ast.Call):
            return self._culprit_of_call(expression)
        return _first(map(self.culprit, ast.iter_child_nodes(expression)))

    def _culprit_of_call(self, call: ast.Call) -> str | None:
        called = self._source.stands_for(call.func)
        given = [*call.args, *(each.value for each in call.keywords)]
        if is_class_of(called, MARKERS):
            return None
        if _changes(called, len(given)):
            return f"{ast.unparse(call.func)}()"
        if called is next and any(isinstance(self._source.stands_for(each), Iterator) for each in call.args):
            return ast.unparse(call)
        if isinstance(call.func, ast.Attribute):
            if call.func.attr == "join" and any(map(self._is_set, given)):
                return "the order of a set"
            if culprit := self.culprit(call.func.value):
                return culprit
        if _shows(called, call.func):
            return _first(map(self.culprit, given))
        return self._culprit_in(called, call) if isinstance(called, FunctionType | MethodType) else None

    def _culprit_in(self, called: FunctionType | MethodType, call: ast.Call) -> str | None:
        """What changes in what a function returns that was called so."""
        source = FunctionSource(called)
        if called in self._within or len(self._within) == LEVELS or is_library(source.path):
            return None
        passed = {
            name: culprit
            for name, values in _passed(called, call).items()
            if (culprit := _first(map(self.culprit, values)))
        }
        culprit = _Reader(source, passed, self._within | {called}).returned()
        if culprit is None or culprit in passed.values():
            return culprit
        return f"{culprit} in {ast.unparse(call.func)}()"

    def _is_set(self, expression: ast.expr, seen: frozenset[str] = frozenset()) -> bool:
        """Whether something comes in the order of a set, which is another in another process."""
        if isinstance(expression, ast.Set | ast.SetComp):
            return True
        if isinstance(expression, ast.GeneratorExp | ast.ListComp):
            return self._is_set(expression.generators[0].iter, seen)
        if isinstance(expression, ast.Call):
            called = self._source.stands_for(expression.func)
            if called is list or called is tuple:
                return any(self._is_set(each, seen) for each in expression.args)
            return called is set or called is frozenset
        if isinstance(expression, ast.Name) and expression.id in self._source.assigned:
            values = self._source.assigned[expression.id] if expression.id not in seen else ()
            in_order = any(
                isinstance(each, ast.Call) and self._source.stands_for(each.func) is sorted for each in values
            )
            return not in_order and any(self._is_set(each, seen | {expression.id}) for each in values)
        return isinstance(self._source.stands_for(expression), set | frozenset)


def _passed(called: Callable[..., Any], call: ast.Call) -> dict[str, list[ast.expr]]:
    """The parameters of a function, and what a call passes for each."""
    named = {each.arg: each.value for each in call.keywords if each.arg is not None}
    try:
        bound = inspect.signature(called).bind_partial(*call.args, **named)
    except (TypeError, ValueError):
        return {}
    return {name: list(_several(value)) for name, value in bound.arguments.items()}


def _several(passed: Any) -> Iterable[ast.expr]:
    """What a parameter is passed: one expression, or as many as `*args` and `**options` take."""
    if isinstance(passed, dict):
        return cast("dict[str, ast.expr]", passed).values()
    return cast("tuple[ast.expr, ...]", passed) if isinstance(passed, tuple) else (passed,)


def _shows(called: Any, written: ast.expr) -> bool:
    """Whether the result of a call has its arguments in it."""
    if called is UNKNOWN:
        return isinstance(written, ast.Attribute) and written.attr in SHOWING
    if isinstance(called, type) or inspect.isbuiltin(called):
        return True
    module = getattr(called, "__module__", None) or ""
    return callable(called) and module.partition(".")[0] in sys.stdlib_module_names


def _made_by(factory: Callable[..., Any] | None) -> str | None:
    if factory is None:
        return None
    if _changes(factory, 0):
        return f"{factory.__name__}()"
    return _Reader(FunctionSource(factory), {}).returned()


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
