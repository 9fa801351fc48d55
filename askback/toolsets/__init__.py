"""The agent side's toolsets: MCP servers whose questions are answered."""

from askback.toolsets.toolset import ResolverToolset, load_resolver_toolsets

__all__ = ["ResolverToolset", "load_resolver_toolsets"]
