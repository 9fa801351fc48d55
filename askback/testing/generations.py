"""The two protocol generations, and a client that insists on one of them."""

from typing import Any, Literal, Self, get_args

import fastmcp
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

Generation = Literal["2026-07-28", "2025-11-25"]
GENERATIONS: tuple[Generation, ...] = get_args(Generation)

Mode = Literal["auto", "legacy"]


def mode_of(generation: Generation) -> Mode:
    """The `mode` of a `fastmcp.Client` for a generation."""
    return "auto" if generation == "2026-07-28" else "legacy"


class GenerationClient(fastmcp.Client[Any]):
    """A client that, given a generation, fails to connect instead of falling back to the other."""

    def __init__(self, server: Any, *, generation: Generation | None = None, **options: Any) -> None:
        if generation is not None:
            options["mode"] = mode_of(generation)
        super().__init__(server, **options)
        self._generation = generation

    async def __aenter__(self) -> Self:
        """Connect.

        Raises:
            RuntimeError: If the server does not support the generation.
        """
        await super().__aenter__()
        spoken = self.protocol_version
        if self._generation == GENERATIONS[0] and spoken not in MODERN_PROTOCOL_VERSIONS:
            await super().__aexit__(None, None, None)  # pyright: ignore[reportUnknownMemberType]
            raise RuntimeError(f"The server speaks {spoken}, but the test needs {self._generation}")
        return self
