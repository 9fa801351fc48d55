"""Refusals of a run, so that a model that tries again does not nag a person."""

from collections import OrderedDict

from mcp_types import ElicitResult

from askback.agents.calls import Call
from askback.exchange.question import Question

MAX_RUNS = 1_000
MAX_REFUSALS = 100


class Refusals:
    """The questions that were declined or cancelled in the latest runs. Nothing tells when a run is over."""

    def __init__(self) -> None:
        self._by_run: OrderedDict[str, dict[str, ElicitResult]] = OrderedDict()

    def of(self, call: Call, question: Question) -> ElicitResult | None:
        """How the same question was refused earlier in the same run."""
        refused = self._by_run.get(call.run.run_id or "") if call.run is not None else None
        return refused.get(question.fingerprint()) if refused else None

    def add(self, call: Call, question: Question, result: ElicitResult) -> None:
        """Remember that a question was refused in its run."""
        if call.run is None or call.run.run_id is None:
            return
        refused = self._by_run.setdefault(call.run.run_id, {})
        self._by_run.move_to_end(call.run.run_id)
        if len(refused) < MAX_REFUSALS:
            refused[question.fingerprint()] = result
        if len(self._by_run) > MAX_RUNS:
            self._by_run.popitem(last=False)
