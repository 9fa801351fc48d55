"""Dataclasses that can be stored as JSON, and sent to other processes and to browsers."""

import functools
from typing import Any, Self

from pydantic import TypeAdapter


class Document:
    """A dataclass that can be written as JSON and read back."""

    @classmethod
    def adapter(cls) -> TypeAdapter[Self]:
        """The type adapter that reads and writes it."""
        return _adapter(cls)

    def to_json(self) -> str:
        """The document as JSON."""
        return self.adapter().dump_json(self, by_alias=True, exclude_none=True).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read JSON that `to_json` has written.

        Raises:
            pydantic.ValidationError: If it is not such a document.
        """
        return cls.adapter().validate_json(text)


@functools.cache
def _adapter(kind: type[Document]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
