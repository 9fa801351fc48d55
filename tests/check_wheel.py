"""Install the built wheel alone, with each extra, into an environment that has nothing else, and import from it."""

import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent

PROMISES = {
    "": """
import askback, askback.integration
from askback.agents import Accept, Answers, Console, Question, rules_from, when
askback.integration.resolve_arguments
try:
    askback.integration.FastMCP
except ImportError as error:
    assert "askback[server]" in str(error)
else:
    raise SystemExit("FastMCP came without the extra")
""",
    "server": "from askback.integration import FastMCP, resolved",
    "agent": "from askback.agents import FromModel, Console; from askback.toolsets import ResolverToolset",
    "cli": """
from importlib.metadata import entry_points
(command,) = [each for each in entry_points(group="console_scripts") if each.name == "askback"]
command.load()
import askback.cli.call, askback.cli.check, askback.cli.graph
""",
    "testing": """
from importlib.metadata import entry_points
(plugin,) = [each for each in entry_points(group="pytest11") if each.name == "askback"]
plugin.load()
from askback.agents import Accept, Question
from askback.testing import Conversation, Rehearsal, ScriptedClient
try:
    from askback.testing import calls
except ImportError as error:
    assert "askback[agent]" in str(error)
else:
    raise SystemExit("Pydantic AI came with the extra for testing servers")
""",
    "all": "import askback.cli.call; from askback.testing import calls; from askback.toolsets import ResolverToolset",
}


def run(*command: str | Path) -> None:
    ran = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{ran.stdout}{ran.stderr}")


def check(wheel: Path, extra: str, place: Path) -> str:
    environment = place / (extra or "none")
    run(sys.executable, "-m", "venv", "--without-pip", environment)
    python = environment / "bin" / "python"
    wanted = f"{wheel}[{extra}]" if extra else f"{wheel}"
    pip = [sys.executable, "-m", "pip", "--python", python, "--quiet", "--disable-pip-version-check"]
    run(*pip, "install", "--constraint", ROOT / "constraints.txt", wanted)
    run(python, "-I", "-W", "error", "-c", PROMISES[extra])
    shutil.rmtree(environment)
    return f"askback[{extra}]" if extra else "askback"


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        print("Installing the wheel with each extra", flush=True)  # noqa: T201
        run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", place, ROOT)
        (wheel,) = place.glob("*.whl")
        with ThreadPoolExecutor(2) as pool:
            for done in pool.map(lambda extra: check(wheel, extra, place), PROMISES):
                print(f"{done} imports what it promises", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
