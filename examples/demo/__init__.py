"""The whole of askback in a few seconds: a refund desk that asks, and an agent that answers."""
