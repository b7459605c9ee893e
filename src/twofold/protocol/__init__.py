"""MCP as values: messages, eras, codecs. No I/O, no clock, no async."""
