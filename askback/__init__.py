"""Tools that ask back, and agents that answer.

The markers a tool author types. A parameter annotated `Annotated[T, Resolve(fn)]` is filled by the resolver `fn`, which
looks the value up, or returns `Elicit`, `Sample` or `ListRoots` to ask the caller for it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from askback.markers import (
        AcceptedElicitation,
        CancelledElicitation,
        DeclinedElicitation,
        Elicit,
        ElicitationResult,
        InvalidSignature,
        ListRoots,
        Resolve,
        Sample,
    )

__all__ = [
    "AcceptedElicitation",
    "CancelledElicitation",
    "DeclinedElicitation",
    "Elicit",
    "ElicitationResult",
    "InvalidSignature",
    "ListRoots",
    "Resolve",
    "Sample",
]


def __getattr__(name: str) -> Any:
    """The markers, imported on first use: the MCP SDK takes half a second, and `askback --version` does not need it."""
    if name in __all__:
        from askback import markers

        return getattr(markers, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
