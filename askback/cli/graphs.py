"""The graph of a tool's resolvers, ready to be drawn."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from askback.cli.questions import PossibleQuestion, Whom, declared_questions, form_of, written_questions
from askback.cli.servers import ServedTool
from askback.exchange.form import Form
from askback.integration import ResolverPlan
from askback.integration.engine.graph import Link

DESCRIPTIONS: Mapping[Whom, str] = {
    "person": "may ask a person",
    "model": "may ask a model",
    "directories": "may ask for the directories",
    "anyone": "does not say whether it asks",
}


@dataclass(frozen=True)
class FormField:
    """A field of a form."""

    name: str
    type: str
    required: bool

    def __str__(self) -> str:
        return f"{self.name}{'' if self.required else '?'}: {self.type}"


@dataclass(frozen=True)
class Ask:
    """Whom a resolver may ask and, if it is a person and the form is known, with which form."""

    whom: Whom
    form: str | None = None
    fields: tuple[FormField, ...] = ()

    def __str__(self) -> str:
        return f"{DESCRIPTIONS[self.whom]}: {self.form}" if self.form else DESCRIPTIONS[self.whom]


@dataclass(frozen=True)
class Need:
    """A parameter that a resolver fills."""

    parameter: str
    resolver: int
    takes: Literal["value", "outcome"]


@dataclass(frozen=True)
class Resolver:
    """A resolver of a tool."""

    name: str
    key: str
    """Its name on the wire."""
    arguments: tuple[str, ...]
    contexts: tuple[str, ...]
    needs: tuple[Need, ...]
    asks: tuple[Ask, ...]
    depth: int
    """The longest chain of resolvers that must run before it."""
    rounds: int
    """The most rounds of questions until its value is known."""


@dataclass(frozen=True)
class ToolGraph:
    """A tool and its resolvers, at the indexes that needs refer to."""

    tool: str
    arguments: tuple[str, ...]
    needs: tuple[Need, ...]
    resolvers: tuple[Resolver, ...]

    @property
    def rounds(self) -> int:
        """The most rounds of questions a call takes, if each round asks everything that can be asked by then."""
        return max((each.rounds for each in self.resolvers), default=0)

    @property
    def effort(self) -> str:
        """The number of rounds, as text."""
        if self.rounds == 0:
            return "asks nothing"
        return f"at most {self.rounds} {'round' if self.rounds == 1 else 'rounds'} of questions"


def graph_of(tool: ServedTool) -> ToolGraph:
    """The graph of a tool's resolvers."""
    resolvers: list[Resolver] = []
    for plan in tool.resolved.plans:
        before = [resolvers[link.resolver] for link in plan.links]
        asks = _asked_by(plan)
        resolvers.append(
            Resolver(
                name=plan.name,
                key=plan.key,
                arguments=plan.arguments,
                contexts=tuple(name for name, _ in plan.contexts),
                needs=tuple(map(_need, plan.links)),
                asks=asks,
                depth=max((each.depth + 1 for each in before), default=0),
                rounds=max((each.rounds for each in before), default=0) + bool(asks),
            )
        )
    return ToolGraph(tool.name, tool.arguments, tuple(map(_need, tool.resolved.links)), tuple(resolvers))


def _need(link: Link) -> Need:
    return Need(link.name, link.resolver, "outcome" if link.takes_outcome else "value")


def _asked_by(plan: ResolverPlan) -> tuple[Ask, ...]:
    questions = declared_questions(plan)
    if any(each.whom == "anyone" or (each.whom == "person" and each.model is None) for each in questions):
        # The annotation leaves it open; the body may say more.
        questions = written_questions(plan.fn) or questions
    return tuple(dict.fromkeys(map(_ask, questions)))


def _ask(question: PossibleQuestion) -> Ask:
    if question.model is None:
        return Ask(question.whom)
    form = form_of(question.model)
    fields = form.fields.values() if isinstance(form, Form) else ()
    shown = tuple(FormField(field.name, field.takes, field.required) for field in fields)
    return Ask(question.whom, question.model.__name__, shown)
