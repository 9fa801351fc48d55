"""Policies as data: rules in a TOML file."""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from askback.agents.policies import when
from askback.exchange.answer import Accept, Answer, Cancel, Decline, Defer
from askback.exchange.question import Kind, Mode, Question

if TYPE_CHECKING:
    from pydantic_ai import RunContext


def rules_from(path: str | Path) -> "Rules":
    """Read a policy from a TOML file.

        [[rule]]
        tool = "refund_*"                 # a shell pattern, as are server and key
        message = "(?i)refund the whole"  # a regular expression, as is url
        answer = "accept"                 # or "decline", "cancel", "defer"
        content = { full = true }

    The first rule that matches a question answers it. `kind`, `mode`, `tool`, `server`, `key`, `message` and `url`
    narrow a rule, as they do in `when`.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is not TOML, or a rule is not valid; the message names the rule and its key.
    """
    path = Path(path)
    try:
        content = _File.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path}: {error}") from error
    except ValidationError as error:
        problems = "; ".join(f"{_place(each['loc'])}: {each['msg']}" for each in error.errors())
        raise ValueError(f"{path}: {problems}") from None
    return Rules([rule.policy() for rule in content.rule])


class Rules:
    """The rules of a file, tried in order."""

    def __init__(self, rules: Sequence[when]) -> None:
        self._rules = rules

    def __call__(self, ctx: "RunContext[Any]", question: Question) -> Answer | None:
        """The answer of the first rule that matches."""
        for rule in self._rules:
            if rule.matches(question):
                return rule(ctx, question)  # pyright: ignore[reportReturnType]
        return None


class _Rule(BaseModel):
    model_config = ConfigDict(extra="forbid")

    answer: Literal["accept", "decline", "cancel", "defer"]
    kind: Kind = "elicitation"
    mode: Mode | None = None
    content: dict[str, Any] | None = None
    tool: str | None = None
    server: str | None = None
    key: str | None = None
    message: str | None = None
    url: str | None = None

    @field_validator("message", "url")
    @classmethod
    def _is_expression(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from None
        return value

    @field_validator("mode", "content")
    @classmethod
    def _goes_with_the_rest(cls, value: Any, info: ValidationInfo) -> Any:
        if info.data.get("kind", "elicitation") != "elicitation":
            raise ValueError("only elicitations have one")
        if info.field_name == "content" and info.data.get("answer", "accept") != "accept":
            raise ValueError(f"goes with answer = 'accept', not with {info.data['answer']!r}")
        if info.field_name == "content" and info.data.get("mode") == "url":
            raise ValueError("a URL question is accepted without content")
        return value

    @field_validator("kind")
    @classmethod
    def _can_be_answered_so(cls, value: str, info: ValidationInfo) -> str:
        if value != "elicitation" and info.data.get("answer") == "accept":
            raise ValueError(f"a {value} request cannot be accepted from a file")
        return value

    def policy(self) -> when:
        given: dict[str, Answer] = {
            "accept": Accept(self.content),
            "decline": Decline(),
            "cancel": Cancel(),
            "defer": Defer(),
        }
        answer = given[self.answer]
        narrowed = self.model_dump(exclude={"answer", "content"}, exclude_none=True)
        return when(lambda ctx, question: answer, **narrowed)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    rule: list[_Rule] = Field(min_length=1)


def _place(location: tuple[int | str, ...]) -> str:
    """Where in the file: `rule 2, key 'anwser'`."""
    words = [f"rule {part + 1}" if isinstance(part, int) else f"key {part!r}" for part in location]
    return ", ".join(word for word in words if word != "key 'rule'") or "key 'rule'"
