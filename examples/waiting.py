"""A suspended run, as a document."""

from pydantic import BaseModel
from pydantic_ai import DeferredToolRequests
from pydantic_ai.messages import ModelMessage


class Waiting(BaseModel):
    """Everything that a suspended run needs to go on."""

    messages: list[ModelMessage]
    requests: DeferredToolRequests
