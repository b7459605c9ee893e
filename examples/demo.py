"""The catalogue as a client meets it: `make demo`.

Starts `examples/catalogue.py` as a child process and speaks with it through `twofold.Client`, first in revision
2026-07-28, then in 2025-11-25. It ends by itself; the exit code is 0 if every answer was what it should be.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from twofold import CheckedResult, Client, StdioServer, TwofoldError
from twofold.cli.show import faces_table, neutralise, tools_table

CATALOGUE = Path(__file__).with_name("catalogue.py")
SERVER = StdioServer(command=sys.executable, args=[str(CATALOGUE)])
ANSWER_SECONDS = 20
"""A child that starts on a busy machine has answered long before."""
PER_REQUEST, HANDSHAKE = "2026-07-28", "2025-11-25"

console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)


class Unexpected(Exception):
    """An answer is not what it should be."""


def expect(what: str, got: object, expected: object) -> None:
    """Hold an answer to what it should be."""
    if got != expected:
        raise Unexpected(f"{what}: expected {expected!r}, got {got!r}")


def headline(text: str) -> None:
    """Announce the next scene."""
    console.print()
    console.rule(Text(text, style="bold"), align="left")


async def show(client: Client, tool: str, /, **arguments: Any) -> CheckedResult:
    """Call a tool and show the call, both faces of its result, and what was found of it."""
    console.print(Text(f"\n{tool} {json.dumps(arguments)}", style="bold cyan"))
    result = await client.call_tool(tool, arguments)
    console.print(faces_table(result))
    console.print(Text(f"judged by the published schema: {result.verdict}", style="dim"))
    return result


def texts(result: CheckedResult) -> list[str]:
    """Give the text blocks of a result."""
    return [block.text for block in result.content if block.type == "text"]


async def show_listing(client: Client) -> None:
    """List the tools: titles, hints, schemas, and one output schema as it is published."""
    headline("What the server offers")
    tools = (await client.list_tools()).tools
    console.print(tools_table(tools, caption="Product catalogue"))
    hints = [
        [each.annotations.read_only_hint, each.annotations.destructive_hint, each.annotations.idempotent_hint]
        for each in tools
    ]
    expect("hints that are all set", [None in each for each in hints], [False] * len(tools))
    expect("icons that are embedded", {icon.src[:5] for tool in tools for icon in tool.icons or []}, {"data:"})
    details = next(tool for tool in tools if tool.name == "product_details")
    console.print(Text("\nproduct_details promises programs this, and is held to it:"))
    console.print(Text(neutralise(json.dumps(details.output_schema, indent=2)), style="green"))
    expect("properties of a product", list(details.output_schema["properties"]), ["name", "price", "stock"])


async def show_results(client: Client) -> None:
    """Show several results with both faces."""
    headline("One result, two faces: text for the model, structure for programs")
    details = await show(client, "product_details", name="Travel mug")
    expect("details", details.structured_content, {"name": "Travel mug", "price": 24.0, "stock": 12})
    expect("details as text", json.loads(texts(details)[0]), details.structured_content)
    expect("verdict", details.verdict.status, "valid")
    found = await show(client, "search_products", query="mug")
    expect("found", [each["name"] for each in found.structured_content], ["Travel mug", "Enamel mug"])
    expect("blocks, one a product", len(found.content), 2)
    summary = await show(client, "price_summary")
    expect("summary", summary.structured_content, {"products": 3, "cheapest": 9.5, "dearest": 38.0})
    expect("summary as text", texts(summary), ["3 products, from 9.5 to 38.0 USD."])


async def show_progress(client: Client, bar: Progress) -> None:
    """Show progress and log messages while a call runs."""
    headline("Progress and log messages while a call runs")

    def move(progress: float, total: float | None, message: str | None) -> None:
        task = bar.task_ids[0] if bar.task_ids else bar.add_task("")
        bar.update(task, completed=progress, total=total, description=message or "")
        console.print(Text(f"  progress {progress:g} of {total:g}: {message}"))

    report = await client.call_tool("import_stock", {"pieces": 5}, on_progress=move)
    console.print(faces_table(report))
    expect("delivered", report.structured_content["delivered"], 15)


async def show_refusals(client: Client) -> None:
    """Show what wrong arguments get, and what a broken promise gets."""
    headline("A refused argument: every problem at once, for the model to mend")
    refused = await show(client, "search_products", qerry="mug", limit=0)
    expect("refused", refused.is_error, True)
    expect("each problem named", [word in texts(refused)[0] for word in ("query", "qerry", "limit")], [True] * 3)
    headline("An upstream that broke its promise: nothing wrong leaves the server")
    broken = await show(client, "supplier_quote", name="Tea pot")
    expect("broken", (broken.is_error, broken.has_structured_content), (True, False))
    expect("what is missing", "valid_days\n  Field required" in texts(broken)[0], True)


def tell_log(level: str, data: Any, _logger: str | None) -> None:
    """Show a log message as a line."""
    console.print(Text(f"  log, {level}: {data}", style="dim"))


async def play_newest() -> None:
    """Speak with the server in the newest revision."""
    async with Client(
        SERVER, revision=PER_REQUEST, timeout_seconds=ANSWER_SECONDS, log_level="info", on_log=tell_log
    ) as client:
        await show_listing(client)
        await show_results(client)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
            await show_progress(client, bar)
        await show_refusals(client)


async def play_earlier() -> None:
    """Speak with the same server as clients of 2025-11-25 do."""
    headline(f"The same server, as clients of {HANDSHAKE} know it")
    async with Client(SERVER, revision=HANDSHAKE, timeout_seconds=ANSWER_SECONDS) as client:
        server = client.server
        expect("revision", server.revision, HANDSHAKE)
        console.print(Text(f"{server.info['title']}, revision {server.revision}"))
        expect("tools", len((await client.list_tools()).tools), 6)
        cleared = await show(client, "clear_catalog")
        expect("cleared", cleared.structured_content, "Catalog cleared")
        gone = await show(client, "product_details", name="Tea pot")
        expect("gone", (gone.is_error, texts(gone)), (True, ["No product named 'Tea pot'"]))


async def play() -> None:
    """Play every scene."""
    await play_newest()
    await play_earlier()


def main() -> int:
    """Play, and say whether everything was as it should be."""
    try:
        asyncio.run(play())
    except (Unexpected, TwofoldError) as fault:
        console.print(Text(f"\nNot as it should be: {fault}", style="bold red"))
        return 1
    console.print(Text("\nEvery answer was what it should be.", style="bold green"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
