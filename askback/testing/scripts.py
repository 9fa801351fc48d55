"""Where the answers of a test come from: by question, in order, from a policy, or from an earlier conversation."""

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
"""What a server may be sent for an answer, whole."""

Asked: TypeAlias = str | re.Pattern[str] | type
Answers: TypeAlias = (
    "Mapping[Any, Any] | list[Any] | tuple[Any, ...] | Conversation | Callable[..., Any] | Script | None"
)
"""What a test may give: `{pattern, model, Elicit, Sample or ListRoots: answer}`, `[answer, ...]`, a policy, a
conversation to repeat, or a script of its own."""


class NotScriptedError(Exception):
    """A question that the script has no answer for; the message says why."""


class Script(ABC):
    """The answers of a test."""

    def begin(self, call: ToolCall) -> None:
        """Take note that a call is made, whether it asks or not."""
        return

    @abstractmethod
    async def reply(self, call: ToolCall, question: Question) -> tuple[Any, str]:
        """What to answer, and what of the script says so.

        Raises:
            NotScriptedError: If nothing does.
        """

    @abstractmethod
    def unused(self) -> list[str]:
        """What the script has answers for that were never asked for, in words."""


def script_of(answers: Answers) -> Script:
    """The script that a test means.

    Raises:
        TypeError: If it is none.
    """
    if isinstance(answers, Script):
        return answers
    if isinstance(answers, Conversation):
        return _Again(answers)
    if callable(answers) and not isinstance(answers, type):
        return _Policy(answers)
    if isinstance(answers, Mapping):
        return _ByQuestion(answers)
    if isinstance(answers, list | tuple | None):  # pyright: ignore[reportUnnecessaryIsInstance]
        return _InOrder(answers or ())
    raise TypeError(
        "answers are a mapping of patterns or models, a list in order, a policy, or a conversation to repeat, not "
        f"{answers!r}"
    )


async def reply_of(script: Script, call: ToolCall, question: Question) -> tuple[Answer | InputResponse, str]:
    """What a script answers, and what of it says so. A result of the protocol is left as it is, all else is checked.

    Raises:
        NotScriptedError: If it answers nothing, or with what does not fit.
    """
    answer, said_by = await script.reply(call, question)
    if isinstance(answer, RESULTS):
        return answer, said_by
    given: Answer = answer if isinstance(answer, ANSWERS) else Accept(answer)
    try:
        if isinstance(given, Accept):
            _check_known_fields(response_to(question, given, said_by), question)
    except ContentError as misfit:
        raise NotScriptedError(f"What {said_by} of the script says to it does not fit: {misfit}") from None
    return given, said_by


def _check_known_fields(response: InputResponse | None, question: Question) -> None:
    """Refuse fields that a form does not have: a server would drop them, and a test has misspelt them."""
    fields = (question.schema or {}).get("properties", {})
    content = response.content if isinstance(response, ElicitResult) else None
    unknown = [name for name in content or {} if name not in fields]
    if unknown:
        raise ContentError(f"the form has no {unknown[0]!r}, only {', '.join(fields) or 'nothing'}")


def unanswered(conversation: Conversation, question: Question, reason: object) -> ConversationError:
    """What a test fails with when a question came that its script does not answer."""
    asked = repr(question.message) if question.message else f"for {question.kind}"
    return ConversationError(f"{question.tool!r} asked {asked}. {reason}", conversation)


def check_used(script: Script, conversation: Conversation) -> None:
    """Make sure that nothing in a script was left over.

    Raises:
        ConversationError: If something was.
    """
    unused = ", ".join(script.unused())
    if unused:
        over = "The conversation is over" if conversation.exchanges else "Nothing was asked at all"
        raise ConversationError(f"{over}, and the script has answers that were never used: {unused}", conversation)


class _ByQuestion(Script):
    def __init__(self, answers: Mapping[Asked, Any]) -> None:
        for asked in answers:
            _check(asked)
        self._answers = answers
        self._used: set[Asked] = set()

    @override
    async def reply(self, call: ToolCall, question: Question) -> tuple[Any, str]:
        for asked, answer in self._answers.items():
            if _is_meant(asked, question):
                if any(_is_same(each.question, question) for each in call.exchanges if each.question is not question):
                    raise NotScriptedError(
                        "It was asked twice in one call. If that is meant, give the answers in order, as a list"
                    )
                self._used.add(asked)
                return answer, _name(asked)
        known = ", ".join(_name(asked) for asked in self._answers)
        raise NotScriptedError(f"The script has no answer for it, only for {known}")

    @override
    def unused(self) -> list[str]:
        return [_name(asked) for asked in self._answers if asked not in self._used]


class _InOrder(Script):
    def __init__(self, answers: Iterable[Any]) -> None:
        self._answers = list(answers)
        self._given = 0

    @override
    async def reply(self, call: ToolCall, question: Question) -> tuple[Any, str]:
        if self._given == len(self._answers):
            raise NotScriptedError(
                "Every answer of the script was given already" if self._answers else "No question was expected"
            )
        self._given += 1
        return self._answers[self._given - 1], f"answer {self._given}"

    @override
    def unused(self) -> list[str]:
        return [f"answer {number + 1}" for number in range(self._given, len(self._answers))]


class _Policy(Script):
    """A policy, asked as by nobody's run. One that is an answer is left over if nobody asks."""

    def __init__(self, policy: Callable[..., Any]) -> None:
        self._policy = policy
        self._name = getattr(policy, "__name__", type(policy).__name__)
        self._left = [self._name] if isinstance(policy, ANSWERS) else []

    @override
    async def reply(self, call: ToolCall, question: Question) -> tuple[Any, str]:
        answer = self._policy(None, question)
        if inspect.isawaitable(answer):
            answer = await answer
        if answer is None:
            raise NotScriptedError(f"{self._name} has no opinion on it")
        self._left = []
        return answer, self._name

    @override
    def unused(self) -> list[str]:
        return self._left


class _Again(Script):
    """The answers of an earlier conversation, to the same questions of the same calls in the same order.

    What a round asks it asks at the same time, in no order. The two generations ask in different orders, so over the
    other one a question only has to be one of the call's.
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
        """What the recorded call that this one repeats has to ask still: the first like it that is not repeated yet."""
        if id(call) not in self._left:
            # Kept, so that no other call gets the same id.
            self._calls.append(call)
            like_it = [
                number
                for number, (each, _) in enumerate(self._recorded)
                if (each.tool, each.arguments) == (call.tool, call.arguments)
            ]
            self._left[id(call)] = self._recorded.pop(like_it[0])[1] if like_it else []
        return self._left[id(call)]

    @override
    def unused(self) -> list[str]:
        left = [
            each for exchanges in (*self._left.values(), *(each for _, each in self._recorded)) for each in exchanges
        ]
        return [repr(each.question.message) if each.question.message else each.question.kind for each in left]


def _expected(question: Question, left: list[Exchange]) -> Exchange:
    """Of what was recorded, what a question should be."""
    in_rounds, was_in_rounds = question.key is not None, left[0].question.key is not None
    if in_rounds and was_in_rounds:
        fitting = [each for each in left if each.question.key == question.key] or [
            each for each in left if each.question.message == question.message
        ]
    elif in_rounds or was_in_rounds:
        fitting = [each for each in left if not _difference(each.question, question)]
    else:
        # People are asked one question after another; models and directories meanwhile.
        fitting = [each for each in left if each.question.kind == question.kind]
    return fitting[0] if fitting else left[0]


def _answer_in(exchange: Exchange) -> Answer:
    if exchange.action != "accept":
        return {"decline": Decline(), "cancel": Cancel()}.get(exchange.action or "", Defer())
    question = exchange.question
    return Accept(exchange.content if question.kind == "elicitation" else recorded(question, exchange.content))


def _difference(before: Question, now: Question) -> str:
    """How a question differs from another; an empty text where it is the same."""
    # Older connections know no keys and rounds, and only they carry the title of a whole form.
    in_rounds = before.key is not None and now.key is not None
    left_out = {"server", "arguments"} if in_rounds else {"server", "arguments", "key", "round"}

    def lines(question: Question) -> list[str]:
        asked: dict[str, Any] = json.loads(question.to_json())
        asked.get("schema", {}).pop("title", None)
        kept = {name: value for name, value in asked.items() if name not in left_out}
        return json.dumps(kept, indent=2, sort_keys=True).splitlines()

    return "\n".join(difflib.unified_diff(lines(before), lines(now), "recorded", "asked now", lineterm=""))


def _is_meant(asked: Asked, question: Question) -> bool:
    kind = _kind(asked)
    return question.kind == kind if kind is not None else question.matches(asked)


def _kind(asked: Asked) -> Kind | None:
    if not isinstance(asked, type):
        return None
    kinds: dict[type, Kind] = {SDKElicit: "elicitation", Sample: "sampling", ListRoots: "roots"}
    return next((kind for word, kind in kinds.items() if issubclass(asked, word)), None)


def _is_same(one: Question, other: Question) -> bool:
    """Whether a resolver asks again, whatever its words, or a person reads the same words again."""
    return (one.key is not None and one.key == other.key) or one.fingerprint() == other.fingerprint()


def _check(asked: object) -> None:
    """Refuse what can stand for no question.

    Raises:
        TypeError: If it is no pattern, model or kind.
        ValueError: If it is no regular expression.
    """
    if not isinstance(asked, str | re.Pattern | type):
        raise TypeError(f"a script answers patterns, models, or Elicit, Sample and ListRoots, not {asked!r}")
    try:
        re.compile(asked if isinstance(asked, str) else "")
    except re.error as error:
        raise ValueError(f"the pattern {asked!r} of the script is no regular expression: {error}") from None


def _name(asked: Asked) -> str:
    if isinstance(asked, type):
        return asked.__name__
    return repr(asked if isinstance(asked, str) else asked.pattern)
