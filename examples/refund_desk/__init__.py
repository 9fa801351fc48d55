"""A desk that refunds what the order says, and not what the model says: a server, a plain client and an agent."""
