"""The Pydantic AI plug: toolsets that answer the questions of their MCP servers."""

from askback.toolsets.toolset import ResolverToolset, load_resolver_toolsets

__all__ = ["ResolverToolset", "load_resolver_toolsets"]
