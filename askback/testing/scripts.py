"""Where the answers of a test come from: by question, in order, from a policy, or from a recorded conversation."""

import difflib
import inspect
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from mcp_types import (
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitResult,
    InputResponse,
    ListRootsResult,
)
from typing_extensions import override

from askback.exchange.answer import ANSWERS, Accept, Answer, Cancel, Decline, Defer
from askback.exchange.form import ContentError
from askback.exchange.question import Kind, Question
from askback.exchange.response import recorded, response_to
from askback.exchange.transcript import Conversation, ConversationError, Exchange, ToolCall
from askback.markers import ListRoots, Sample, SDKElicit

RESULTS = (ElicitResult, CreateMessageResult, CreateMessageResultWithTools, ListRootsResult)
"""Whole results of the protocol, which a script may send as they are."""

QuestionPattern: TypeAlias = str | re.Pattern[str] | type
ScriptLike: TypeAlias = Mapping[Any, Any] | list[Any] | tuple[Any, ...] | Conversation | Callable[..., Any] | None
"""What a test may give for a script: `{pattern, model, Elicit, Sample or ListRoots: answer}`, `[answer, ...]`, a
policy, or a conversation to replay."""


class NotScriptedError(Exception):
    """The script does not answer a question; the message says why."""


class Script(ABC):
    """The answers of a test."""

    @property
    def allows_changes(self) -> bool:
        """Whether a resolver may ask a different question when it runs again."""
        return False

    def begin(self, call: ToolCall) -> None:
        """Take note of a call, whether or not it will ask."""
        return

    @abstractmethod
    async def reply(self, call: ToolCall, question: Question) -> tuple[Any, str]:
        """The answer to a question, and which part of the script gives it.

        Raises:
            NotScriptedError: If the script has no answer.
        """

    @abstractmethod
    def unused(self) -> list[str]:
        """The parts of the script that were never used, for people."""


def script_of(answers: ScriptLike) -> Script:
    """The script that a test means.

    Raises:
        TypeError: If it cannot be used as a script.
    """
    if isinstance(answers, Conversation):
        return _Replay(answers)
    if callable(answers) and not isinstance(answers, type):
        return _Policy(answers)
    if isinstance(answers, Mapping):
        return _ByQuestion(answers)
    if isinstance(answers, list | tuple | None):  # pyright: ignore[reportUnnecessaryIsInstance]
        return _InOrder(answers or ())
    raise TypeError(
        "answers must be a mapping of patterns or models, a list in order, a policy, or a conversation to replay, not "
        f"{answers!r}"
    )


async def reply_of(script: Script, call: ToolCall, question: Question) -> tuple[Answer | InputResponse, str]:
    """The answer of a script, and which part of it gives it. Unless it is a whole result, its content is checked.

    Raises:
        NotScriptedError: If the script has no answer, its answer does not fit, or the question has changed since its
            resolver ran before.
    """
    if not script.allows_changes:
        check_unchanged(call, question)
    answer, by = await script.reply(call, question)
    if isinstance(answer, RESULTS):
        return answer, by
    given: Answer = answer if isinstance(answer, ANSWERS) else Accept(answer)
    try:
        if isinstance(given, Accept):
            _check_known_fields(response_to(question, given, by), question)
    except ContentError as mismatch:
        raise NotScriptedError(f"The answer from the script ({by}) does not fit: {mismatch}") from None
    return given, by


def check_unchanged(call: ToolCall, question: Question) -> None:
    """Make sure that a resolver which runs again in a later round asks the same question.

    An answer counts only for exactly the question that was asked, so one that contains a clock, a random number or the
    order of a set is asked again and again.

    Raises:
        NotScriptedError: If the question is a different one.
    """
    for earlier in (each.question for each in call.exchanges):
        if not _runs_again(earlier, question) or earlier.fingerprint() == question.fingerprint():
            continue
        before, now = repr(earlier.message), repr(question.message)
        if before == now:
            before, now = f"the form\n\n{_lines(earlier.schema)}\n\n", f"the form\n\n{_lines(question.schema)}\n\n"
        raise NotScriptedError(
            f"The resolver {question.key} asked {before} in round {earlier.round} and {now} in round {question.round}. "
            "Resolvers run again in every round, and must then ask the same question: leave out what changes, or take "
            "it from an argument of the tool"
        )


def _runs_again(earlier: Question, question: Question) -> bool:
    """Whether the resolver of an earlier question asks this one in a later round."""
    # The key of a resolver is `module:name`. A tool that asks by hand may use one key for different questions.
    is_resolver = question.key is not None and ":" in question.key
    return is_resolver and earlier.key == question.key and earlier.round < question.round


def _lines(schema: object) -> str:
    return json.dumps(schema, indent=2, sort_keys=True)


def _check_known_fields(response: InputResponse | None, question: Question) -> None:
    """Reject fields that the form does not have: a server would drop them, so the test has misspelt them."""
    fields = question.form.fields if question.form is not None else {}
    content = response.content if isinstance(response, ElicitResult) else None
    unknown = [name for name in content or {} if name not in fields]
    if unknown:
        raise ContentError(f"the form has no {unknown[0]!r}, only {', '.join(fields) or 'no fields'}")


def unanswered(conversation: Conversation, question: Question, reason: object) -> ConversationError:
    """The error of a test whose script does not answer a question."""
    asked = repr(question.message) if question.message else f"for {question.kind}"
    return ConversationError(f"{question.tool!r} asked {asked}. {reason}", conversation)


def check_used(script: Script, conversation: Conversation) -> None:
    """Make sure that all of a script was used.

    Raises:
        ConversationError: If a part of it was not.
    """
    unused = ", ".join(script.unused())
    if unused:
        over = "The conversation is over" if conversation.exchanges else "Nothing was asked"
        raise ConversationError(f"{over}, but the script has answers that were never used: {unused}", conversation)


class _ByQuestion(Script):
    def __init__(self, answers: Mapping[QuestionPattern, Any]) -> None:
        for pattern in answers:
            _check_pattern(pattern)
        self._answers = answers
        self._used: set[QuestionPattern] = set()

    @override
    async def reply(self, call: ToolCall, question: Question) -> tuple[Any, str]:
        for pattern, answer in self._answers.items():
            if _matches(pattern, question):
                if any(_is_same(each.question, question) for each in call.exchanges if each.question is not question):
                    raise NotScriptedError(
                        "It was asked twice in one call. If that is intended, give the answers in order, as a list"
                    )
                self._used.add(pattern)
                return answer, _name(pattern)
        known = ", ".join(_name(pattern) for pattern in self._answers)
        raise NotScriptedError(f"The script has no answer for it, only for {known}")

    @override
    def unused(self) -> list[str]:
        return [_name(pattern) for pattern in self._answers if pattern not in self._used]


class _InOrder(Script):
    def __init__(self, answers: Iterable[Any]) -> None:
        self._answers = list(answers)
        self._given = 0

    @property
    @override
    def allows_changes(self) -> bool:
        # An answer for it is on the list, so the test expects another question.
        return self._given < len(self._answers)

    @override
    async def reply(self, call: ToolCall, question: Question) -> tuple[Any, str]:
        if self._given == len(self._answers):
            raise NotScriptedError(
                "All answers of the script have been given" if self._answers else "No question was expected"
            )
        self._given += 1
        return self._answers[self._given - 1], f"answer {self._given}"

    @override
    def unused(self) -> list[str]:
        return [f"answer {number + 1}" for number in range(self._given, len(self._answers))]


class _Policy(Script):
    """A policy, called without a run. If it is itself an answer, it has to be used."""

    def __init__(self, policy: Callable[..., Any]) -> None:
        self._policy = policy
        self._name = getattr(policy, "__name__", type(policy).__name__)
        self._unused = [self._name] if isinstance(policy, ANSWERS) else []

    @override
    async def reply(self, call: ToolCall, question: Question) -> tuple[Any, str]:
        answer = self._policy(None, question)
        if inspect.isawaitable(answer):
            answer = await answer
        if answer is None:
            raise NotScriptedError(f"{self._name} has no opinion on it")
        self._unused = []
        return answer, self._name

    @override
    def unused(self) -> list[str]:
        return self._unused


class _Replay(Script):
    """The answers of a recorded conversation, to the same questions of the same calls in the same order.

    The questions of a round have no order. The two generations ask in different orders, so on the other one a question
    only has to be one of those that the call asked.
    """

    def __init__(self, conversation: Conversation) -> None:
        self._recorded = [(call, list(call.exchanges)) for call in conversation.calls]
        self._left: dict[int, list[Exchange]] = {}
        self._calls: list[ToolCall] = []

    @override
    def begin(self, call: ToolCall) -> None:
        self._left_of(call)

    @override
    async def reply(self, call: ToolCall, question: Question) -> tuple[Any, str]:
        left = self._left_of(call)
        if not left:
            raise NotScriptedError("It was not asked when the conversation was recorded")
        expected = _expected(question, left)
        difference = _difference(expected.question, question)
        if difference:
            if any(not _difference(each.question, question) for each in left):
                before = expected.question.message or expected.question.kind
                raise NotScriptedError(f"When the conversation was recorded, {before!r} was asked before it")
            raise NotScriptedError(f"It is not what was asked when the conversation was recorded:\n\n{difference}")
        left.remove(expected)
        return _answer_in(expected), "the recording"

    def _left_of(self, call: ToolCall) -> list[Exchange]:
        """What is left of the recorded call that this one replays: the first such call that is not yet replayed."""
        if id(call) not in self._left:
            # Kept, so that no later call gets the same id.
            self._calls.append(call)
            same = [
                number
                for number, (each, _) in enumerate(self._recorded)
                if (each.tool, each.arguments) == (call.tool, call.arguments)
            ]
            self._left[id(call)] = self._recorded.pop(same[0])[1] if same else []
        return self._left[id(call)]

    @override
    def unused(self) -> list[str]:
        left = [
            each for exchanges in (*self._left.values(), *(each for _, each in self._recorded)) for each in exchanges
        ]
        return [repr(each.question.message) if each.question.message else each.question.kind for each in left]


def _expected(question: Question, left: list[Exchange]) -> Exchange:
    """The recorded exchange that a question should repeat."""
    in_rounds, was_in_rounds = question.in_rounds, left[0].question.in_rounds
    if in_rounds and was_in_rounds:
        # By key first: two resolvers may ask in the same words, and get different answers.
        candidates = [each for each in left if each.question.key == question.key] or [
            each for each in left if each.question.message == question.message
        ]
    elif in_rounds or was_in_rounds:
        candidates = [each for each in left if not _difference(each.question, question)]
    else:
        # People are asked one question after another; models and directories meanwhile.
        candidates = [each for each in left if each.question.kind == question.kind]
    return candidates[0] if candidates else left[0]


def _answer_in(exchange: Exchange) -> Answer:
    if exchange.action != "accept":
        return {"decline": Decline(), "cancel": Cancel()}.get(exchange.action or "", Defer())
    question = exchange.question
    return Accept(exchange.content if question.kind == "elicitation" else recorded(question, exchange.content))


def _difference(before: Question, now: Question) -> str:
    """How two questions differ, as a diff; empty if they do not."""
    # Older connections have no keys and rounds, and only they carry the title of a whole form.
    in_rounds = before.in_rounds and now.in_rounds
    ignored = {"server", "arguments"} if in_rounds else {"server", "arguments", "key", "round"}

    def lines(question: Question) -> list[str]:
        asked: dict[str, Any] = json.loads(question.to_json())
        asked.get("schema", {}).pop("title", None)
        return _lines({name: value for name, value in asked.items() if name not in ignored}).splitlines()

    return "\n".join(difflib.unified_diff(lines(before), lines(now), "recorded", "asked now", lineterm=""))


def _matches(pattern: QuestionPattern, question: Question) -> bool:
    kind = _kind(pattern)
    return question.kind == kind if kind is not None else question.matches(pattern)


def _kind(pattern: QuestionPattern) -> Kind | None:
    if not isinstance(pattern, type):
        return None
    kinds: dict[type, Kind] = {SDKElicit: "elicitation", Sample: "sampling", ListRoots: "roots"}
    return next((kind for marker, kind in kinds.items() if issubclass(pattern, marker)), None)


def _is_same(one: Question, other: Question) -> bool:
    """Whether two questions come from the same resolver, or look the same to a person."""
    return (one.in_rounds and one.key == other.key) or one.fingerprint() == other.fingerprint()


def _check_pattern(pattern: object) -> None:
    """Reject keys of a mapping that cannot match a question.

    Raises:
        TypeError: If it is not a pattern, a model or a marker.
        ValueError: If it is not a valid regular expression.
    """
    if not isinstance(pattern, str | re.Pattern | type):
        raise TypeError(f"a script's keys are patterns, models, or Elicit, Sample and ListRoots, not {pattern!r}")
    try:
        re.compile(pattern if isinstance(pattern, str) else "")
    except re.error as error:
        raise ValueError(f"the pattern {pattern!r} of the script is not a valid regular expression: {error}") from None


def _name(pattern: QuestionPattern) -> str:
    if isinstance(pattern, type):
        return pattern.__name__
    return repr(pattern if isinstance(pattern, str) else pattern.pattern)
