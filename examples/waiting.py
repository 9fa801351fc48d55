"""A run that waits, as the document that it is."""

from pydantic import BaseModel
from pydantic_ai import DeferredToolRequests
from pydantic_ai.messages import ModelMessage


class Waiting(BaseModel):
    """All there is of a run that waits."""

    messages: list[ModelMessage]
    requests: DeferredToolRequests
