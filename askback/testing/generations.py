"""The two generations of the protocol, and clients that speak the one they were told to."""

from typing import Any, Literal, Self, get_args

import fastmcp
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

Generation = Literal["2026-07-28", "2025-11-25"]
GENERATIONS: tuple[Generation, ...] = get_args(Generation)

Mode = Literal["auto", "legacy"]


def mode_of(generation: Generation) -> Mode:
    """A generation, as `fastmcp.Client` takes it."""
    return "auto" if generation == "2026-07-28" else "legacy"


class ExactClient(fastmcp.Client[Any]):
    """A client that fails to connect rather than fall back to another generation."""

    async def __aenter__(self) -> Self:
        """Connect.

        Raises:
            RuntimeError: If the server does not speak the generation.
        """
        await super().__aenter__()
        if self.mode == "auto" and self.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            spoken = self.protocol_version
            await super().__aexit__(None, None, None)  # pyright: ignore[reportUnknownMemberType]
            raise RuntimeError(f"The server speaks {spoken}, and is to be tried on {GENERATIONS[0]}")
        return self
