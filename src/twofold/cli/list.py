"""`twofold list TARGET`: what tools a server offers."""

import asyncio
import sys
from typing import Annotated

import msgspec
from cyclopts import Parameter

from twofold.cli.failures import Exit
from twofold.cli.show import print_json, show_tools
from twofold.cli.target import load_target


def list_tools(target: str, /, *, json: Annotated[bool, Parameter(negative="")] = False) -> int:
    """Show a server's tools: a table in a terminal, JSON elsewhere.

    Args:
        target: `module:object`, `file.py`, or `file.py:name`.
        json: JSON in a terminal too: the definitions as a client gets them.
    """
    server = load_target(target)
    tools = asyncio.run(server.list_tools())
    if json or not sys.stdout.isatty():
        print_json(msgspec.json.encode({"tools": tools}))
    else:
        show_tools(tools, server=server)
    return Exit.RESULT
