"""Tools that ask back, and agents that answer.

The words a tool author types. A parameter annotated `Annotated[T, Resolve(fn)]` is filled by the resolver `fn`, which
looks the value up, or returns `Elicit`, `Sample` or `ListRoots` to ask the caller for it.
"""

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
