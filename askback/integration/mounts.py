"""Looking through mounts: what tool a mounted server's tool stands for."""

from fastmcp.server.providers.fastmcp_provider import FastMCPProviderTool
from fastmcp.tools import Tool


async def mounted_tool(tool: Tool) -> Tool:
    """The tool that runs when `tool` is called, through any number of mounted servers.

    FastMCP has no public way to ask for the server behind a mounted tool; tests/test_servers.py notices if this one is
    gone.
    """
    while isinstance(tool, FastMCPProviderTool):
        found = await tool._server.get_tool(tool._original_name)  # pyright: ignore[reportPrivateUsage]
        if found is None:
            return tool
        tool = found
    return tool
