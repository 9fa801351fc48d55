"""A desk that refunds what the order says, and not what the model says.

First a plain client, then an agent. Each starts the server as its own process and connects over stdio; with `--http`
the server runs in this process, on a free port.
"""

from askback.testing import Rehearsal
from examples.command_line import Options, parser_for, run
from examples.refund_desk import agent, client, server


async def story(options: Options) -> None:
    """Run the client and the agent over the chosen transport."""
    transport = Rehearsal(over="http" if options.http else "stdio").transport(server.mcp)
    await client.story(transport, options)
    await agent.story(transport, options)


if __name__ == "__main__":
    parser = parser_for("refund_desk", __doc__, model=True, http=True)
    parser.add_argument("--ask", action="store_true", help="answer the questions yourself, at this terminal")
    run(parser, story)
