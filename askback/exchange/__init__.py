"""Questions and answers between a server and a client, for both sides and without any framework.

A server asks a `Question`, its `Form` says what the answer must look like, somebody gives an `Answer`, and a
`Conversation` records both. Everything here needs the MCP SDK alone, and everything else may import it.
"""
