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


class GenerationClient(fastmcp.Client[Any]):
    """A client that, told a generation, fails to connect rather than fall back to the other."""

    def __init__(self, server: Any, *, generation: Generation | None = None, **options: Any) -> None:
        if generation is not None:
            options["mode"] = mode_of(generation)
        super().__init__(server, **options)
        self._generation = generation

    async def __aenter__(self) -> Self:
        """Connect.

        Raises:
            RuntimeError: If the server does not speak the generation.
        """
        await super().__aenter__()
        spoken = self.protocol_version
        if self._generation == GENERATIONS[0] and spoken not in MODERN_PROTOCOL_VERSIONS:
            await super().__aexit__(None, None, None)  # pyright: ignore[reportUnknownMemberType]
            raise RuntimeError(f"The server speaks {spoken}, and is to be tried on {self._generation}")
        return self
