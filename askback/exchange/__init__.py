"""What is asked and answered between a server and a client, for both sides and without any framework.

A `Question` is what a server asks, its `Form` what the answer must look like, an `Answer` what somebody says to it, and
a `Conversation` the record of both. Everything here needs the MCP SDK alone.
"""
