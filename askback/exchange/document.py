"""What can be put away, and handed to other processes and to people's browsers: as JSON."""

import functools
from typing import Any, Self

from pydantic import TypeAdapter


class Document:
    """A dataclass that goes to JSON and comes back from it."""

    @classmethod
    def adapter(cls) -> TypeAdapter[Self]:
        """How it goes there and back."""
        return _adapter(cls)

    def to_json(self) -> str:
        """It as JSON."""
        return self.adapter().dump_json(self, by_alias=True, exclude_none=True).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """What `to_json` made the JSON of.

        Raises:
            pydantic.ValidationError: If it is not one.
        """
        return cls.adapter().validate_json(text)


@functools.cache
def _adapter(kind: type[Document]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
