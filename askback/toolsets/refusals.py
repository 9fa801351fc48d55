"""What was refused in a run, so that a model that tries again does not nag a person."""

from collections import OrderedDict

from mcp_types import ElicitResult

from askback.exchange.question import Question
from askback.toolsets.calls import Call

MOST_RUNS = 1_000
MOST_REFUSALS = 100


class Refusals:
    """What was declined or cancelled, of the latest runs: there is no telling when a run is over."""

    def __init__(self) -> None:
        self._by_run: OrderedDict[str, dict[str, ElicitResult]] = OrderedDict()

    def of(self, call: Call, question: Question) -> ElicitResult | None:
        """How the same question was refused before in the same run."""
        refused = self._by_run.get(call.run.ctx.run_id or "") if call.run is not None else None
        return refused.get(question.fingerprint()) if refused else None

    def add(self, call: Call, question: Question, result: ElicitResult) -> None:
        """Note that a question was refused in its run."""
        if call.run is None or call.run.ctx.run_id is None:
            return
        refused = self._by_run.setdefault(call.run.ctx.run_id, {})
        self._by_run.move_to_end(call.run.ctx.run_id)
        if len(refused) < MOST_REFUSALS:
            refused[question.fingerprint()] = result
        if len(self._by_run) > MOST_RUNS:
            self._by_run.popitem(last=False)
