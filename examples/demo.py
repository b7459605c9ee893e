"""The catalogue as a client meets it: `make demo`.

Starts `examples/catalogue.py` as a child process and speaks JSON-RPC with it over pipes, first in revision
2026-07-28, then in 2025-11-25. It ends by itself; the exit code is 0 if every answer was what it should be.
"""

import contextlib
import itertools
import json
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from twofold import CallToolResult, ToolDefinition
from twofold.cli.show import faces_table, neutralise, tools_table

CATALOGUE = Path(__file__).with_name("catalogue.py")
ANSWER_SECONDS = 20
"""A child that starts on a busy machine has answered long before."""
END_SECONDS = 5
ME = {"name": "demo", "version": "1.0.0"}
PER_REQUEST, HANDSHAKE = "2026-07-28", "2025-11-25"

console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)


class Unexpected(Exception):
    """An answer is not what it should be."""


class Child:
    """The catalogue in a process of its own, and the little of JSON-RPC it takes to speak with it."""

    def __init__(self, revision: str) -> None:
        self._revision = revision
        self._ids = itertools.count(1)
        self._lines: queue.Queue[str | None] = queue.Queue()
        command = [sys.executable, str(CATALOGUE)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")  # noqa: S603
        if process.stdin is None or process.stdout is None:
            raise Unexpected("the catalogue has no pipes")
        self._process, self._stdin, self._stdout = process, process.stdin, process.stdout
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the child: closing its stdin asks it to go; if it does not, it is made to."""
        with contextlib.suppress(OSError):
            self._stdin.close()
        for insist in (self._process.terminate, self._process.kill):
            try:
                self._process.wait(timeout=END_SECONDS)
            except subprocess.TimeoutExpired:
                insist()
        if self._process.wait() != 0 and kind is None:
            raise Unexpected(f"the catalogue ended with {self._process.returncode} instead of 0")

    def _read(self) -> None:
        for line in self._stdout:
            self._lines.put(line)
        self._lines.put(None)

    def send(self, message: dict[str, Any]) -> None:
        """Write one message."""
        with contextlib.suppress(BrokenPipeError):  # then there is no answer either, and that is told
            self._stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            self._stdin.flush()

    def request(self, method: str, params: dict[str, Any] | None = None, *, bar: Progress | None = None) -> Any:
        """Ask, show what is notified meanwhile, and give the result."""
        request_id = next(self._ids)
        meta: dict[str, Any] = {"progressToken": request_id} if bar else {}
        if self._revision == PER_REQUEST:
            meta |= {
                "io.modelcontextprotocol/protocolVersion": PER_REQUEST,
                "io.modelcontextprotocol/clientInfo": ME,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            if bar:
                meta["io.modelcontextprotocol/logLevel"] = "info"
        sent = {**(params or {}), **({"_meta": meta} if meta else {})}
        self.send({"id": request_id, "method": method, "params": sent})
        while (message := self._next()).get("id") != request_id:
            if bar is not None:
                show_notification(message, bar)
        if "result" not in message:
            raise Unexpected(f"{method} was answered with {message.get('error')}")
        return message["result"]

    def _next(self) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=ANSWER_SECONDS)
        except queue.Empty:
            raise Unexpected(f"no answer within {ANSWER_SECONDS} seconds") from None
        if line is None:
            raise Unexpected("the catalogue went away in the middle")
        message: dict[str, Any] = json.loads(line)
        return message

    def call(self, tool: str, arguments: dict[str, Any], *, bar: Progress | None = None) -> CallToolResult:
        """Call a tool."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments}, bar=bar)
        return msgspec.convert({key: value for key, value in result.items() if key != "resultType"}, CallToolResult)


def show_notification(message: dict[str, Any], bar: Progress) -> None:
    """Show progress as a bar's movement, a log message as a line."""
    params = message.get("params", {})
    if message.get("method") == "notifications/progress":
        task = bar.task_ids[0] if bar.task_ids else bar.add_task("")
        bar.update(task, completed=params["progress"], total=params["total"], description=params["message"])
        bar.console.print(Text(f"  progress {params['progress']:g} of {params['total']:g}: {params['message']}"))
    elif message.get("method") == "notifications/message":
        bar.console.print(Text(f"  log, {params['level']}: {params['data']}", style="dim"))


def expect(what: str, got: object, expected: object) -> None:
    """Hold an answer to what it should be."""
    if got != expected:
        raise Unexpected(f"{what}: expected {expected!r}, got {got!r}")


def headline(text: str) -> None:
    """Announce the next scene."""
    console.print()
    console.rule(Text(text, style="bold"), align="left")


def show(child: Child, tool: str, /, **arguments: Any) -> CallToolResult:
    """Call a tool and show the call and both faces of its result."""
    console.print(Text(f"\n{tool} {json.dumps(arguments)}", style="bold cyan"))
    result = child.call(tool, arguments)
    console.print(faces_table(result))
    return result


def texts(result: CallToolResult) -> list[str]:
    """Give the text blocks of a result."""
    return [block.text for block in result.content if block.type == "text"]


def show_listing(child: Child) -> None:
    """List the tools: titles, hints, schemas, and one output schema as it is published."""
    headline("What the server offers")
    listing = child.request("tools/list")["tools"]
    tools = msgspec.convert(listing, list[ToolDefinition])
    console.print(tools_table(tools, caption="Product catalogue"))
    expect("hints that are all set", {len(tool["annotations"]) for tool in listing}, {4})
    expect(
        "icons that are embedded", {icon["src"][:5] for tool in listing for icon in tool.get("icons", [])}, {"data:"}
    )
    details = next(tool for tool in listing if tool["name"] == "product_details")
    console.print(Text("\nproduct_details promises programs this, and is held to it:"))
    console.print(Text(neutralise(json.dumps(details["outputSchema"], indent=2)), style="green"))
    expect("properties of a product", list(details["outputSchema"]["properties"]), ["name", "price", "stock"])


def show_results(child: Child) -> None:
    """Show several results with both faces."""
    headline("One result, two faces: text for the model, structure for programs")
    details = show(child, "product_details", name="Travel mug")
    expect("details", details.structured_content, {"name": "Travel mug", "price": 24.0, "stock": 12})
    expect("details as text", json.loads(texts(details)[0]), details.structured_content)
    found = show(child, "search_products", query="mug")
    expect("found", [each["name"] for each in found.structured_content["result"]], ["Travel mug", "Enamel mug"])
    expect("blocks, one a product", len(found.content), 2)
    summary = show(child, "price_summary")
    expect("summary", summary.structured_content, {"products": 3, "cheapest": 9.5, "dearest": 38.0})
    expect("summary as text", texts(summary), ["3 products, from 9.5 to 38.0 USD."])


def show_progress(child: Child) -> None:
    """Show progress and log messages while a call runs."""
    headline("Progress and log messages while a call runs")
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        report = child.call("import_stock", {"pieces": 5}, bar=bar)
    console.print(faces_table(report))
    expect("delivered", report.structured_content["delivered"], 15)


def show_refusals(child: Child) -> None:
    """Show what wrong arguments get, and what a broken promise gets."""
    headline("A refused argument: every problem at once, for the model to mend")
    refused = show(child, "search_products", qerry="mug", limit=0)
    expect("refused", refused.is_error, True)
    expect("each problem named", [word in texts(refused)[0] for word in ("query", "qerry", "limit")], [True] * 3)
    headline("An upstream that broke its promise: nothing wrong leaves the server")
    broken = show(child, "supplier_quote", name="Tea pot")
    expect("broken", (broken.is_error, broken.has_structured_content), (True, False))
    expect("what is missing", "valid_days\n  Field required" in texts(broken)[0], True)


def show_earlier_era() -> None:
    """Speak with the same server as clients of 2025-11-25 do."""
    headline(f"The same server, as clients of {HANDSHAKE} know it")
    with Child(HANDSHAKE) as child:
        opened = child.request("initialize", {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": ME})
        expect("revision", opened["protocolVersion"], HANDSHAKE)
        child.send({"method": "notifications/initialized"})
        console.print(Text(f"{opened['serverInfo']['title']}, revision {opened['protocolVersion']}"))
        expect("tools", len(child.request("tools/list")["tools"]), 6)
        cleared = show(child, "clear_catalog")
        expect("cleared", cleared.structured_content, {"result": "Catalog cleared"})
        gone = show(child, "product_details", name="Tea pot")
        expect("gone", (gone.is_error, texts(gone)), (True, ["No product named 'Tea pot'"]))


def main() -> int:
    """Play every scene."""
    try:
        with Child(PER_REQUEST) as child:
            show_listing(child)
            show_results(child)
            show_progress(child)
            show_refusals(child)
        show_earlier_era()
    except Unexpected as fault:
        console.print(Text(f"\nNot as it should be: {fault}", style="bold red"))
        return 1
    console.print(Text("\nEvery answer was what it should be.", style="bold green"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
