"""`askback check`: what it finds, where, and what it says to do."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import CommandLine

FAULTS = "tests.cli.faults:mcp"
SOURCE = Path(__file__).with_name("faults.py")

HEAD = """
from typing import Annotated, Any
from pydantic import BaseModel
from askback import Elicit, Resolve
from askback.integration import FastMCP
mcp = FastMCP("Small")
class Yes(BaseModel):
    ok: bool
"""


def found(cli: CommandLine, server: str = FAULTS, *options: str) -> list[dict[str, Any]]:
    return json.loads(cli("check", server, "--format", "json", *options).out)["findings"]


def resolvers(findings: list[dict[str, Any]], code: str) -> list[str]:
    return [each["resolver"] for each in findings if each["code"] == code]


def test_questions_for_secrets_are_found_by_field_title_and_message(cli: CommandLine) -> None:
    findings = found(cli)
    assert resolvers(findings, "secret-in-form") == ["log_in", "constant_message", "formatted_message"]
    form, *messages = (each for each in findings if each["code"] == "secret-in-form")
    assert form["problem"] == "The form Login asks for a secret: 'password', 'code'."
    assert form["tools"] == ["secret", "secret_again"]
    assert {each["problem"] for each in messages} == {"The message of a form asks for a secret."}
    assert "URL mode" in form["remedy"]


def test_resolvers_that_no_tool_reaches_are_found_also_in_modules_that_are_used(cli: CommandLine) -> None:
    findings = found(cli)
    assert resolvers(findings, "unreached-resolver") == ["never_used", "never_used_either", "give_back"]
    assert Path(findings[-1]["file"]).name == "lending.py"


def test_keys_that_collide_are_found_where_one_may_ask(cli: CommandLine) -> None:
    findings = [each for each in found(cli) if each["code"] == "colliding-keys"]
    assert [(each["resolver"], each["tools"]) for each in findings] == [
        ("ask", ["colliding"]),
        ("partly", ["colliding"]),
    ]
    assert "'tests.cli.faults:asker.<locals>.ask'" in findings[0]["problem"]


def test_forms_that_cannot_be_asked_are_found_in_the_body_where_nothing_declares_them(cli: CommandLine) -> None:
    findings = [each for each in found(cli) if each["code"] == "unaskable-form"]
    assert [each["resolver"] for each in findings] == ["undeclared", "not_a_model"]
    assert findings[0]["problem"].startswith("The protocol cannot ask for Nested: its field 'inner' is")


def test_types_that_do_not_always_agree_are_found(cli: CommandLine) -> None:
    findings = [each for each in found(cli) if each["code"] == "doubtful-type"]
    problem = "The parameter {!r} of {!r} may get something else than it is annotated to take."
    assert [(each["resolver"], each["tools"], each["problem"]) for each in findings] == [
        ("may_be_text", ["doubtful"], problem.format("a", "doubtful")),
        ("may_be_text", ["doubtful"], problem.format("text", "after_text")),
    ]


def test_every_finding_says_where_it_is(cli: CommandLine) -> None:
    lines = SOURCE.read_text().splitlines()
    for each in found(cli):
        written = Path(each["file"]).read_text().splitlines() if each["file"] != str(SOURCE) else lines
        line = written[each["line"] - 1]
        assert re.match(rf"(    )?def {each['resolver']}\(", line)


def test_text_is_for_people_and_counts(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(SOURCE.parent)
    ran = cli("check", FAULTS)
    assert ran.code == 1
    line = SOURCE.read_text().splitlines().index("def log_in() -> Elicit[Login]:") + 1
    assert ran.out.startswith(f"faults.py:{line}: secret-in-form: log_in of secret, secret_again\n    The form Login ")
    assert ran.out.endswith("12 findings; checked 6 tools and 25 resolvers.\n")


def test_codes_can_be_ignored(cli: CommandLine) -> None:
    codes = {each["code"] for each in found(cli, FAULTS, "--ignore", "colliding-keys", "--ignore", "secret-in-form")}
    assert codes == {"doubtful-type", "unaskable-form", "unreached-resolver"}
    ran = cli("check", FAULTS, "--ignore", "no-such-code")
    assert ran.code == 2
    assert "unreached-resolver" in ran.err


def test_a_clean_server_is_exit_code_0(cli: CommandLine) -> None:
    ran = cli("check", "tests.cli.shop:mcp")
    assert (ran.code, ran.out) == (0, "no findings; checked 3 tools and 9 resolvers.\n")
    assert found(cli, "tests.cli.shop:mcp") == []


def test_a_tool_that_is_rejected_at_import_is_a_finding(cli: CommandLine, folder: Path) -> None:
    nested = "class Nested(BaseModel):\n    inner: Yes\ndef ask() -> Elicit[Nested]: ...\n"
    tool = "@mcp.tool\ndef odd(it: Annotated[Any, Resolve(ask)]) -> str: ...\n"
    (folder / "refusing.py").write_text(HEAD + nested + tool)
    ran = cli("check", "refusing.py")
    assert ran.code == 1
    line = (HEAD + nested).count("\n") + 1
    first, problem, *_, count = ran.out.splitlines()
    assert first == f"refusing.py:{line}: invalid-signature: ask of odd"
    assert "Tool 'odd': parameter 'it', resolver 'ask': it cannot ask for Nested" in problem
    assert count == "1 finding; the server could not be loaded."


def test_a_tool_that_is_rejected_when_it_is_listed_is_a_finding(cli: CommandLine, folder: Path) -> None:
    server = """
import fastmcp
inside = fastmcp.FastMCP("Inside")
@inside.tool
def odd(it: Annotated[Any, Resolve(lambda nobody: 1)]) -> str: ...
from fastmcp.server.providers import LocalProvider
provider = LocalProvider()
provider.tool(odd)
mcp.add_provider(provider)
"""
    (folder / "listing.py").write_text(HEAD + server)
    (finding,) = found(cli, "listing.py")
    assert (finding["code"], finding["tools"]) == ("invalid-signature", ["odd"])


def test_a_rejection_without_a_tool_or_resolver_is_a_finding_too(cli: CommandLine, folder: Path) -> None:
    (folder / "prompts.py").write_text(
        HEAD + "def ask() -> int: ...\n@mcp.prompt\ndef odd(it: Annotated[int, Resolve(ask)]) -> str: ...\n"
    )
    (finding,) = found(cli, "prompts.py")
    assert (finding["code"], finding["tools"], finding["resolver"]) == ("invalid-signature", [], "")


def test_resolvers_of_disabled_tools_and_of_other_servers_are_reached(cli: CommandLine, folder: Path) -> None:
    server = """
import fastmcp
from askback.integration import resolved
def first() -> Elicit[Yes]: ...
def second() -> Elicit[Yes]: ...
def third() -> Elicit[Yes]: ...
@mcp.tool
def disabled(it: Annotated[Yes, Resolve(first)]) -> str: ...
mcp.disable(names={"disabled"})
other = FastMCP("Other")
@other.tool
def elsewhere(it: Annotated[Yes, Resolve(second)]) -> str: ...
@mcp.tool
def enabled() -> str: ...
@resolved
def not_yet(it: Annotated[Yes, Resolve(third)]) -> str: ...
"""
    (folder / "reaching.py").write_text(HEAD + server)
    assert found(cli, "reaching.py") == []


def test_helpers_in_other_modules_that_resolvers_call_are_reached(cli: CommandLine, folder: Path) -> None:
    (folder / "wording.py").write_text(HEAD + "def base() -> int: ...\ndef words() -> Elicit[Yes]: ...\n")
    server = "import wording\ndef ask() -> Elicit[Yes]:\n    return wording.words()\n"
    tool = "@mcp.tool\ndef t(a: Annotated[Yes, Resolve(ask)], b: Annotated[int, Resolve(wording.base)]) -> str: ...\n"
    (folder / "wordy.py").write_text(HEAD + server + tool)
    assert found(cli, "wordy.py") == []


def test_what_a_library_offers_need_not_be_used(
    cli: CommandLine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = folder / "libraries"
    library.mkdir()
    monkeypatch.setattr("askback.cli.places.LIBRARIES", (library,))
    monkeypatch.syspath_prepend(library)
    (library / "offers_a_lot.py").write_text(
        HEAD + "def used() -> int: ...\ndef unused() -> Elicit[Yes]: ...\n@mcp.tool\ndef t(): ...\n"
    )
    tool = "import offers_a_lot\n@mcp.tool\ndef t(a: Annotated[int, Resolve(offers_a_lot.used)]) -> str: ...\n"
    (folder / "modest.py").write_text(HEAD + tool)
    assert found(cli, "modest.py") == []
    assert resolvers(found(cli, "offers_a_lot:mcp"), "unreached-resolver") == ["unused"]


@pytest.mark.parametrize("file", ["'<string>'", "__file__"])
def test_resolvers_whose_source_is_not_there_are_checked_as_far_as_they_can_be(
    cli: CommandLine, folder: Path, file: str
) -> None:
    server = f'''
class Secret(BaseModel):
    password: str
exec(compile("""
def ask() -> Elicit[Secret]:
    return Elicit("?", Secret)
""", {file}, "exec"))
@mcp.tool
def t(a: Annotated[Any, Resolve(ask)]) -> str: ...
'''
    (folder / "generated.py").write_text(HEAD + server)
    (finding,) = found(cli, "generated.py")
    assert (finding["code"], finding["line"]) == ("secret-in-form", 2)
    assert finding["file"] in ("<string>", str(folder / "generated.py"))


def test_annotations_that_cannot_be_read_any_more_are_made_up_for_by_the_body(cli: CommandLine, folder: Path) -> None:
    server = """
class Secret(BaseModel):
    password: str
def register():
    class Local(BaseModel):
        ok: bool
    def ask() -> Elicit[Local]:
        return Elicit("?", Secret)
    @mcp.tool
    def t(a: Annotated[Any, Resolve(ask)]) -> str: ...
register()
"""
    (folder / "postponing.py").write_text("from __future__ import annotations\n" + HEAD + server)
    (finding,) = found(cli, "postponing.py")
    assert (finding["code"], finding["resolver"]) == ("secret-in-form", "ask")
    assert "may ask a person: Secret" in cli("graph", "postponing.py").out


def test_resolvers_that_cannot_be_hashed_are_counted(cli: CommandLine, folder: Path) -> None:
    server = """
from dataclasses import dataclass
@dataclass
class Looks:
    value: int
    def __call__(self) -> int:
        return self.value
@mcp.tool
def t(a: Annotated[int, Resolve(Looks(1))], b: Annotated[int, Resolve(Looks(2))]) -> str: ...
"""
    (folder / "unhashable.py").write_text(HEAD + server)
    assert cli("check", "unhashable.py").out == "no findings; checked 1 tool and 2 resolvers.\n"


SECRETS = """
from typing import Literal
class Limit(BaseModel):
    max_tokens: int
    keep_key: bool
    token_kind: Literal["bearer", "basic"]
class Note(BaseModel):
    note: str = ""
def reset() -> Elicit[Yes]:
    return Elicit("This will reset the user's password. Continue?", Yes)
def limit() -> Elicit[Limit]:
    return Elicit("How many tokens at most?", Limit)
def noted() -> Elicit[Note]:
    return Elicit("The API key?", Note)
def nested() -> Any:
    class Nested(BaseModel):
        inner: Yes
    return Elicit("The password?", Nested)
@mcp.tool
def t(
    a: Annotated[Yes, Resolve(reset)],
    b: Annotated[Limit, Resolve(limit)],
    c: Annotated[Note, Resolve(noted)],
    d: Annotated[Any, Resolve(nested)],
) -> str: ...
"""


def test_a_form_without_room_for_text_asks_for_no_secret(cli: CommandLine, folder: Path) -> None:
    (folder / "confirming.py").write_text(HEAD + SECRETS)
    assert resolvers(found(cli, "confirming.py"), "secret-in-form") == ["noted", "nested"]


def test_a_resolver_that_another_server_of_the_process_needs_is_not_reported(cli: CommandLine, folder: Path) -> None:
    (folder / "shared.py").write_text(HEAD + "def one() -> Elicit[Yes]: ...\ndef two() -> Elicit[Yes]: ...\n")
    for name in ("one", "two"):
        source = f"""
import shared
def register():
    @mcp.tool
    def t(it: Annotated[Any, Resolve(shared.{name})]) -> str: ...
register()
"""
        (folder / f"uses_{name}.py").write_text(HEAD + source)
    (alone,) = found(cli, "uses_one")
    assert (alone["code"], alone["resolver"]) == ("unreached-resolver", "two")
    assert alone["problem"] == "No tool of this server uses this resolver, so it never runs."
    assert "if no other server uses it" in alone["remedy"]
    (folder / "both.py").write_text("from uses_one import mcp\nimport uses_two\n")
    assert found(cli, "both") == []


def test_a_server_that_cannot_be_looked_into_is_not_called_clean(cli: CommandLine, folder: Path) -> None:
    (folder / "behind.py").write_text(HEAD + "@mcp.tool\ndef t() -> str: ...\n")
    proxy = "from fastmcp.server import create_proxy\nfrom behind import mcp as inside\n"
    (folder / "proxy.py").write_text(proxy + "mcp = create_proxy(inside)\n")
    ran = cli("check", "proxy.py")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "askback: the tools of 'proxy.py' run elsewhere and cannot be inspected: t\n"
    (folder / "partly.py").write_text(HEAD + proxy + "@mcp.tool\ndef own(): ...\nmcp.mount(create_proxy(inside))\n")
    ran = cli("check", "partly.py")
    assert (ran.code, ran.out) == (0, "no findings; checked 1 tool and no resolvers.\n")
    assert ran.err == "askback: some tools of 'partly.py' run elsewhere and cannot be inspected: t\n"
    assert cli("graph", "proxy.py").err.endswith("Its tools run elsewhere and cannot be inspected: t\n")
    assert cli("graph", "partly.py").err.endswith("Its tools: own; others run elsewhere and cannot be inspected: t\n")
    (folder / "bare.py").write_text(HEAD)
    ran = cli("check", "bare.py")
    assert (ran.code, ran.out, ran.err) == (2, "", "askback: 'bare.py' has no tools\n")


def test_names_cannot_move_the_terminal(cli: CommandLine, folder: Path) -> None:
    tool = "class Secret(BaseModel):\n    password: str\ndef ask() -> Elicit[Secret]: ...\n"
    tool += "@mcp.tool(name='a\\x1b[2J\\nb')\ndef t(a: Annotated[Secret, Resolve(ask)]) -> str: ...\n"
    (folder / "named.py").write_text(HEAD + tool)
    assert cli("check", "named.py").out.splitlines()[0].endswith(": secret-in-form: ask of a?[2J b")
