"""Errors that a command reports as one sentence, without a traceback."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from askback.markers import InvalidSignature


class CommandError(Exception):
    """A command could not do its work; the message is the sentence to print."""


class NoServerError(CommandError):
    """A module has no server in it."""


class RejectedToolError(CommandError):
    """A tool of the server was rejected at registration, because of its resolvers."""

    def __init__(self, problem: "InvalidSignature", file: str, line: int) -> None:
        self.problem = problem
        self.file = file
        self.line = line
        super().__init__(f"{file}, line {line}: {problem}")
