"""The engine on its own: a host that is no server, and the imports it keeps to."""

import ast
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import pytest
from mcp.server.mcpserver import Context as SDKContext
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import (
    ClientCapabilities,
    ElicitationCapability,
    ElicitResult,
    InputRequiredResult,
    InputResponse,
    ServerRequest,
)
from pydantic import BaseModel

import askback
from askback import Elicit, Resolve
from askback.integration import (
    Continuation,
    Host,
    build_resolver_plans,
    find_resolved_parameters,
    resolve_arguments,
)

ResultT = TypeVar("ResultT", bound=BaseModel)


class Sure(BaseModel):
    ok: bool


class Rounds(Host):
    """A host in a few lines: calls in rounds, and the context is a word."""

    def __init__(self, answers: Mapping[str, InputResponse] | None = None, state: str | None = None) -> None:
        self._continuation = Continuation(state, answers or {})

    def unreachable(self, kind: str) -> str | None:
        return None

    @property
    def in_rounds(self) -> bool:
        return True

    @property
    def client_capabilities(self) -> ClientCapabilities | None:
        return ClientCapabilities(elicitation=ElicitationCapability())

    async def continuation(self) -> Continuation:
        return self._continuation

    async def send(self, request: ServerRequest, result_type: type[ResultT]) -> ResultT:
        raise AssertionError("calls go in rounds here")

    def context(self, kind: type) -> object:
        return f"the {kind.__name__}"


async def ask(title: str, ctx: SDKContext[Any, Any]) -> Elicit[Sure]:
    return Elicit(f"Buy {title} in {ctx}?", Sure)


async def buy(title: str, sure: Annotated[Sure, Resolve(ask)]) -> str:
    raise AssertionError("the engine runs resolvers, not bodies")


async def test_another_host_can_run_resolvers() -> None:
    resolved = find_resolved_parameters(buy)
    assert [(name, takes_outcome) for name, (_, takes_outcome) in resolved.items()] == [("sure", False)]
    plans = build_resolver_plans(resolved, {"title"}, tool="buy")
    assert [(plan.name, plan.key) for plan in plans.values()] == [("ask", "tests.test_engine:ask")]

    first = await resolve_arguments(resolved, plans, {"title": "Dune"}, Rounds())
    assert isinstance(first, InputRequiredResult)
    assert first.input_requests is not None
    (request,) = first.input_requests.values()
    assert getattr(request.params, "message", None) == "Buy Dune in the Context?"
    answers = {"tests.test_engine:ask": ElicitResult(action="accept", content={"ok": True})}
    values = await resolve_arguments(resolved, plans, {"title": "Dune"}, Rounds(answers, first.request_state))
    assert values == {"sure": Sure(ok=True)}

    declined = {"tests.test_engine:ask": ElicitResult(action="decline")}
    with pytest.raises(ToolError, match="Resolver for parameter 'sure' could not resolve: elicitation was decline"):
        await resolve_arguments(resolved, plans, {"title": "Dune"}, Rounds(declined, first.request_state))


@pytest.mark.parametrize("state", ["", "{", "[" * 100_000, "[]", "null", '{"v": 2, "t": "buy"}'])
async def test_a_state_that_cannot_be_read_is_asked_again(state: str) -> None:
    resolved = find_resolved_parameters(buy)
    plans = build_resolver_plans(resolved, {"title"}, tool="buy")
    answers = {"tests.test_engine:ask": ElicitResult(action="accept", content={"ok": True})}
    result = await resolve_arguments(resolved, plans, {"title": "Dune"}, Rounds(answers, state))
    assert isinstance(result, InputRequiredResult)


class Requests(Rounds):
    """The same host, asking while the call waits; its client answers everything with its roots."""

    @property
    def in_rounds(self) -> bool:
        return False

    async def send(self, request: ServerRequest, result_type: type[ResultT]) -> ResultT:
        return result_type.model_validate({"roots": []})


async def test_a_result_of_another_type_is_no_answer() -> None:
    resolved = find_resolved_parameters(buy)
    plans = build_resolver_plans(resolved, {"title"})
    with pytest.raises(ToolError, match="Resolver 'ask': the response is not an answer to its question"):
        await resolve_arguments(resolved, plans, {"title": "Dune"}, Requests())


async def test_a_tool_without_resolvers_needs_nothing() -> None:
    assert await resolve_arguments({}, build_resolver_plans({}, set()), {}, Rounds()) == {}


PACKAGE = Path(askback.__file__).parent


def imports_of(module: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


def test_the_engine_imports_no_framework() -> None:
    modules = list((PACKAGE / "integration" / "engine").glob("*.py"))
    assert modules
    for module in modules:
        for name in imports_of(module):
            assert name.split(".")[0] not in ("fastmcp", "pydantic_ai"), module
            assert not name.startswith("askback.integration") or name.startswith("askback.integration.engine"), module


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import askback", ("fastmcp", "pydantic_ai", "askback.integration")),
        ("from askback.integration import resolve_arguments", ("fastmcp", "pydantic_ai")),
        ("from askback.integration import FastMCP, resolved", ("pydantic_ai", "askback.agents", "askback.toolsets")),
        ("import askback.agents", ("askback.integration", "askback.toolsets")),
        ("import askback.toolsets", ("askback.integration",)),
    ],
)
@pytest.mark.processes
def test_a_process_imports_only_its_own_side(code: str, absent: tuple[str, ...]) -> None:
    loaded = f"{code}\nimport sys\nprint(sorted(set(sys.modules) & set({absent!r})))"
    ran = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_without_fastmcp_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import askback.integration

    for name in [
        name for name in sys.modules if name.startswith(("askback.integration.server", "askback.integration.tools"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastmcp", None)
    with pytest.raises(ImportError, match=r"FastMCP needs FastMCP: pip install 'askback\[server\]'"):
        _ = askback.integration.FastMCP
    with pytest.raises(AttributeError, match="has no attribute 'Fast'"):
        _ = askback.integration.Fast  # pyright: ignore
