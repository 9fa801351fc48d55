"""A desk that refunds what the order says, not what the model says.

First a plain client, then an agent. Each spawns the server as a process of its own and talks to it over stdio; with
`--http` the server is hosted here, on a free port.
"""

from askback.testing import Rehearsal
from examples.command_line import Options, parser_for, run
from examples.refund_desk import agent, client, server


async def story(options: Options) -> None:
    """The client's part and the agent's, over the transport that was asked for."""
    transport = Rehearsal(over="http" if options.http else "stdio").transport(server.mcp)
    await client.story(transport, options)
    await agent.story(transport, options)


if __name__ == "__main__":
    parser = parser_for("refund_desk", __doc__, model=True, http=True)
    parser.add_argument("--ask", action="store_true", help="be the person who is asked, at this terminal")
    run(parser, story)
