"""Errors of the answering side, as Pydantic AI users catch them."""

from collections.abc import Generator
from contextlib import contextmanager

from pydantic_ai import UserError

from askback.agents.errors import AnsweringError, PolicyError


class AnsweringUserError(AnsweringError, UserError):
    """An `AnsweringError` that `except UserError` catches."""


class PolicyUserError(PolicyError, UserError):
    """A `PolicyError` that `except UserError` catches."""


def as_user_error(error: BaseException) -> BaseException:
    """The error to raise to users of Pydantic AI."""
    if isinstance(error, UserError) or not isinstance(error, AnsweringError):
        return error
    if isinstance(error, PolicyError):
        return PolicyUserError(error.policy, error.question, error.reason)
    return AnsweringUserError(str(error))


@contextmanager
def user_errors() -> Generator[None]:
    """Raise `AnsweringError` as Pydantic AI's `UserError`."""
    try:
        yield
    except AnsweringError as error:
        raise as_user_error(error) from error.__cause__
