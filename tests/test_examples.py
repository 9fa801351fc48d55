"""The examples, run as programs, in a folder where they must leave nothing behind."""

import os
import signal
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from examples.command_line import StoryError, expect
from examples.durable.__main__ import check_dbos
from tests.processes import heeding_ctrl_c

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[1]
GENERATIONS = {"2026-07-28": [], "2025-11-25": ["--legacy"]}
DBOS_WORKS = sys.version_info < (3, 12) or sqlite3.sqlite_version_info >= (3, 42)


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    def under(self, heading: str) -> list[str]:
        """The lines of the paragraph with this heading."""
        (found,) = [each for each in self.out.split("\n\n") if each.strip().startswith(heading)]
        return [line.strip() for line in found.strip().splitlines()[1:]]


async def run(folder: Path, module: str, *arguments: str) -> Ran:
    command = [sys.executable, "-W", "error", "-m", f"examples.{module}", *arguments]
    with anyio.fail_after(120):
        done = await anyio.run_process(
            command, check=False, cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdin=subprocess.DEVNULL
        )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


async def told(folder: Path, module: str, *arguments: str) -> dict[str, Ran]:
    """Run an example on both generations at the same time; it must succeed and leave nothing behind."""
    runs: dict[str, Ran] = {}

    async def tell(generation: str, options: list[str]) -> None:
        runs[generation] = await run(folder, module, *options, *arguments)

    async with anyio.create_task_group() as group:
        for generation, options in GENERATIONS.items():
            group.start_soon(tell, generation, options)
    for ran in runs.values():
        assert (ran.code, ran.err) == (0, ""), ran
    assert list(folder.iterdir()) == []  # noqa: ASYNC240
    return runs


async def test_the_bookshop_looks_up_works_out_and_asks_only_when_it_matters(tmp_path: Path) -> None:
    for generation, ran in (await told(tmp_path, "bookshop")).items():
        schema = [f"The model sees that {tool} takes: title" for tool in ("reserve_book", "promise_delivery")]
        assert ran.under(f"On protocol {generation}")[:2] == schema
        assert ran.under("1. The stock is looked up").count("said      Reserved 'Dune' (6 copies left).") == 2
        assert ran.under("2. The delivery depends")[1:] == [
            "said      'Neuromancer' would arrive in 2-3 weeks; 0 copies are in stock.",
            "lookups   1",
        ]
        asks = ran.under("3. The customer is asked")
        assert asks[:2] == ["order_book(title='Dune')", "said      Ordered 'Dune'."]
        assert asks.count("asked     'Neuromancer' is out of stock (2-3 weeks). Order anyway?") == 3
        assert [line for line in asks[2:] if line.startswith(("answered", "said", "failed"))] == [
            "answered  confirm=True",
            "said      Backordered 'Neuromancer'; it ships in 2-3 weeks.",
            "answered  confirm=False",
            "said      No order placed.",
            "answered  (declines)",
            "failed    Resolver for parameter 'backorder' could not resolve: elicitation was decline. The user "
            "declined the question \"'Neuromancer' is out of stock (2-3 weeks). Order anyway?\"; calling the tool "
            "again with the same arguments will not change that.",
        ]


async def test_the_folder_is_deleted_only_by_a_yes_and_an_empty_one_without_a_question(tmp_path: Path) -> None:
    for generation, ran in (await told(tmp_path, "delete_folder")).items():
        assert f"On protocol {generation}" in ran.out
        assert ran.under("Nothing to lose") == ["delete_folder(path='drafts')", "said      Deleted 'drafts'."]
        assert ran.under("Something to lose")[2::4] == [
            "answered  ok=True",
            "answered  ok=False",
            "answered  (declines)",
            "answered  (cancels)",
        ]
        assert ran.under("Something to lose")[3::4] == [
            "said      Deleted 'letters'.",
            "said      Kept 'photos', as you wish.",
            "said      Kept 'photos': you declined to answer.",
            "said      Kept 'photos': you closed the question.",
        ]
        assert ran.out.endswith("Left: photos\n")


@pytest.mark.parametrize("transport", [[], ["--http"]], ids=["stdio", "http"])
async def test_the_refund_desk_refunds_what_the_order_says(tmp_path: Path, transport: list[str]) -> None:
    scope = "asked     ORD-7002 has MUG, LAMP. Refund all of it, or one line?"
    for generation, ran in (await told(tmp_path, "refund_desk", *transport)).items():
        assert ran.under(f"A client, on protocol {generation}") == [
            "The model sees that refund_order takes: order_id, reason"
        ]
        assert ran.under("One line")[1:] == ['said      {"order_id":"ORD-7001","cents":1250,"restocked":false}']
        assert ran.under("Two lines")[1:] == [
            scope,
            "answered  full=True",
            "asked     Put MUG and LAMP back on the shelf?",
            "answered  restock=True",
            'said      {"order_id":"ORD-7002","cents":6150,"restocked":true}',
        ]
        assert ran.under("One of the two lines")[-2:] == [
            "answered  (declines)",
            'said      {"order_id":"ORD-7002","cents":4900,"restocked":false}',
        ]
        assert ran.under("A line that the order does not have")[-1] == "failed    ORD-7002 has no line 'BOAT'."
        no_scope = ran.under("No scope")
        assert no_scope[1:3] == [scope, "answered  (declines)"]
        assert len(no_scope) == 4
        assert "Resolver for parameter 'scope' could not resolve: elicitation was decline" in no_scope[3]

        assert f"An agent, on protocol {generation}" in ran.out
        ada, bob = ran.under("Ada may refund"), ran.under("Bob may refund")
        assert [ada[2], ada[4]] == [
            "answered  accept with sku='', full=True, by small_refunds",
            "answered  accept with restock=True, by Answers",
        ]
        assert [bob[2], bob[4]] == [
            "answered  accept with sku='LAMP', full=False, by supervisor",
            "answered  accept with restock=True, by Answers",
        ]
        assert ("'cents': 6150" in ada[5], "'cents': 4900" in bob[5]) == (True, True)


async def test_the_second_opinion_decides_and_counts(tmp_path: Path) -> None:
    for generation, ran in (await told(tmp_path, "second_opinion")).items():
        assert f"On protocol {generation}" in ran.out
        assert "said      Published: the second opinion was 'yes'." in ran.out
        assert "failed    Not published: the second opinion was 'no'." in ran.out
        assert "said      Filed under sports." in ran.out
        assert ran.out.endswith("The run made 7 requests to models, second opinions included.\n")


async def test_the_workspace_is_all_that_is_touched(tmp_path: Path) -> None:
    for generation, ran in (await told(tmp_path, "workspace")).items():
        assert f"On protocol {generation}" in ran.out
        assert "said      Removed essay.bak from 'ada'." in ran.out
        assert ran.out.count("failed    'bob' is not in a directory that you allow. Nothing was touched.") == 2
        assert ran.out.endswith("Ada has: essay.txt\nBob has: essay.bak, essay.txt\n")


async def test_the_policy_file_answers_what_it_has_rules_for(tmp_path: Path) -> None:
    for generation, ran in (await told(tmp_path, "policy_file")).items():
        assert f"On protocol {generation}" in ran.out
        assert ran.under("book_room(nights=2)") == [
            "asked     Breakfast, at 12 a day?",
            "answered  accept with wanted=True, by Rules",
            "asked     Our newsletter, every day?",
            "answered  decline, by Rules",
            "asked     Insurance, in case you cannot come?",
            "answered  cancel, by Rules",
            "asked     A parking space, at 20 a day?",
            "answered  decline, by (nobody)",
            "said      Booked for 2 nights, with breakfast.",
            "The agent says: Booked for 2 nights, with breakfast.",
        ]


async def test_another_policy_file_is_obeyed_and_a_broken_one_explained(tmp_path: Path) -> None:
    rules, broken = tmp_path / "rules.toml", tmp_path / "broken.toml"
    rules.write_text('[[rule]]\nmessage = "parking"\nanswer = "accept"\ncontent = { wanted = true }\n')
    broken.write_text('[[rule]]\nanswer = "perhaps"\n')
    obeyed = await run(tmp_path, "policy_file", "--rules", str(rules))
    assert (obeyed.code, "Booked for 2 nights, with parking." in obeyed.out) == (0, True)
    explained = await run(tmp_path, "policy_file", "--rules", str(broken))
    assert (explained.code, "rule 1, key 'answer'" in explained.err, "Traceback" in explained.err) == (2, True, False)


async def test_the_inbox_waits_in_a_file_between_processes(tmp_path: Path) -> None:
    runs = await told(tmp_path, "inbox")
    for ran in runs.values():
        ends = [line.split(maxsplit=2) for line in ran.out.splitlines() if line.startswith("   Process ")]
        assert len({process for _, process, _ in ends}) == 3
        assert [how for _, _, how in ends[:2]] == ["ends. Pending questions: 2", "ends. Pending questions: 1"]
        assert ends[2][2].startswith("ends, and the run is done: Paid 1,200 to the paper mill. | Resolver for")
        assert "   Pay 48,000 to a friend of the boss for INV-32?\n" in ran.out
    assert "Once answered, a call goes on where it stopped." in runs["2026-07-28"].out
    assert "Once answered, a call is made again from the start." in runs["2025-11-25"].out


async def test_the_inbox_can_be_worked_by_hand(tmp_path: Path) -> None:
    file = str(tmp_path / "inbox.json")

    async def step(*words: str) -> Ran:
        return await run(tmp_path, "inbox", *words)

    assert (await step("start", file)).code == 0
    ids = [line.split()[1] for line in (await step("list", file)).out.splitlines() if line.split()[0] == "id"]
    unknown = await step("answer", file, "nobody", "decline")
    assert (unknown.code, unknown.err) == (1, "These answers are for no question of these requests: nobody\n")
    assert (await step("answer", file, ids[1], "accept", '{"approved": false}')).code == 0
    done = await step("answer", file, ids[0], "cancel")
    assert (done.code, "Did not pay INV-32." in done.out, "elicitation was cancel" in done.out) == (0, True, True)
    gone = await step("list", file)
    assert (gone.code, "No such file" in gone.err, "Traceback" in gone.err) == (1, True, False)


@pytest.mark.skipif(not DBOS_WORKS, reason="from Python 3.12 on, DBOS needs SQLite 3.42 for unixepoch('subsec')")
async def test_the_durable_run_asks_once_and_ends_in_another_process(tmp_path: Path) -> None:
    for ran in (await told(tmp_path, "durable")).values():
        first, second = ran.under("A process starts the run."), ran.under("Another one is started")
        asked, waits = (line.split(maxsplit=2) for line in first[:2])
        assert asked[2] == "asks: Pay 1,200 to the paper mill for INV-31?"
        assert waits == [*asked[:2], "waits for the answer"]
        assert first[-1] == "(killed)"
        assert [line.split(maxsplit=2)[2] for line in second] == [
            "waits for the answer",
            "is done: Paid 1,200 to the paper mill.",
        ]
        assert second[0].split()[1] != asked[1]


def test_the_durable_example_says_what_dbos_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as old:
        old.setattr(sqlite3, "sqlite_version_info", (3, 40, 1))
        old.setattr(sys, "version_info", (3, 12))
        with pytest.raises(StoryError, match="DBOS needs SQLite 3.42 or newer"):
            check_dbos()
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "dbos", None)
        with pytest.raises(StoryError, match="pip install"):
            check_dbos()


async def test_a_story_that_goes_another_way_says_so_and_fails(tmp_path: Path) -> None:
    with pytest.raises(StoryError, match="expected 2, got 1"):
        expect(1, 2)
    ran = await run(tmp_path, "refund_desk", "--http", "--ask")  # with nobody at a terminal to ask
    assert ran.code == 1
    assert ran.err.startswith("The story went another way:")
    assert "answered  decline, by (nobody)" in ran.out


@pytest.mark.parametrize("module", ["refund_desk", "inbox", "durable"])
async def test_an_unknown_model_is_explained(tmp_path: Path, module: str) -> None:
    ran = await run(tmp_path, module, "--model", "nobody:nothing")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith(f"python -m examples.{module}: error: argument --model: Unknown model: nobody:nothing\n")


async def test_a_model_that_does_something_else_ends_the_story_with_a_sentence(tmp_path: Path) -> None:
    ran = await run(tmp_path, "workspace", "--model", "test")
    assert ran.code == 1
    assert ran.err.startswith("With test the story ended early: Tool 'remove_backups' exceeded max retries")


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is a signal elsewhere")
@pytest.mark.parametrize(
    "module",
    [
        "refund_desk",
        "refund_desk --http",
        "inbox",
        pytest.param("durable", marks=pytest.mark.skipif(not DBOS_WORKS, reason="DBOS")),
    ],
)
async def test_ctrl_c_leaves_no_process_behind(tmp_path: Path, module: str) -> None:
    command = heeding_ctrl_c("-m", *f"examples.{module}".split())
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    with anyio.fail_after(60):
        async with await anyio.open_process(
            command, cwd=tmp_path, env=environment, start_new_session=True, stderr=subprocess.DEVNULL
        ) as process:
            assert process.stdout is not None
            out = BufferedByteReceiveStream(process.stdout)
            await out.receive_until(b"\n", 1000)
            process.send_signal(signal.SIGINT)
            assert await process.wait() == 130
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
