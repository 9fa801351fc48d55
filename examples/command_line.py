"""What the examples' command lines share: their options, and an exit code that says how the story went."""

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from pydantic_ai.models import Model

T = TypeVar("T")


class Options(argparse.Namespace):
    """The options of the command line."""

    mode: Literal["auto", "legacy"]
    """The `mode` of `fastmcp.Client`: the newest generation, or the one before it."""
    http: bool = False
    model: "Model | None" = None


class StoryError(Exception):
    """The story cannot go on; the message says why."""


def expect(got: object, wanted: object) -> None:
    """Check that the story goes as planned.

    Raises:
        StoryError: If it does not.
    """
    if got != wanted:
        raise StoryError(f"The story went another way: expected {wanted!r}, got {got!r}.")


def parser_for(
    name: str, description: str | None, *, model: bool = False, http: bool = False
) -> argparse.ArgumentParser:
    """A parser for an example's options: the generation, and the model and the transport if it offers them."""
    parser = argparse.ArgumentParser(
        prog=f"python -m examples.{name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--legacy",
        dest="mode",
        action="store_const",
        const="legacy",
        default="auto",
        help="use protocol 2025-11-25 instead of 2026-07-28",
    )
    if http:
        parser.add_argument("--http", action="store_true", help="serve over HTTP instead of spawning the server")
    if model:
        parser.add_argument(
            "--model", type=argument(_model), metavar="PROVIDER:NAME", help="a real model instead of the scripted one"
        )
    return parser


def run(parser: argparse.ArgumentParser, story: Callable[[Options], Coroutine[Any, Any, None]]) -> None:
    """Parse the options and run the story. The process exits with 0 if it goes as planned, or else says why not."""
    options = parser.parse_args(namespace=Options())
    logging.disable(logging.CRITICAL)  # FastMCP logs each failing call, and some are meant to fail
    os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")
    try:
        asyncio.run(story(options))
    except KeyboardInterrupt:
        sys.exit(130)
    except (StoryError, OSError) as wrong:
        sys.exit(str(wrong))
    except Exception as failure:
        if options.model is None:
            raise
        sys.exit(f"With {options.model.model_name} the story ended early: {failure}")


def argument(read: Callable[[str], T]) -> Callable[[str], T]:
    """Parse an argument, and report its own error message if it is invalid."""

    def read_or_say(text: str) -> T:
        try:
            return read(text)
        except (ValueError, OSError, RuntimeError, ImportError) as wrong:
            raise argparse.ArgumentTypeError(str(wrong)) from None

    return read_or_say


def _model(name: str) -> "Model":
    from pydantic_ai.models import infer_model  # not at the top: some examples do without Pydantic AI

    return infer_model(name)
