"""For people who test their own MCP programs: `twofold.testing.hostile`, a server that misbehaves as it is told."""
