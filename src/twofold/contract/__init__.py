"""JSON Schema as MCP uses it: dialects, bounds, references inside the document, and what does not fit."""
