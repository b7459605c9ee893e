"""`twofold serve --http`: what is served where, and what is refused before anything is bound."""

import contextlib
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from twofold.cli import main

BOUND_SECONDS = 40
"""Generous: machines are shared; a server that has ended is noticed at once."""
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
}
POSTED = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


def serve(capsys, *options: str) -> tuple[int, str, str]:
    """Run the command with options it refuses; gives the exit code, stdout, and the last line of stderr."""
    code = main(["serve", "shop.py", *options])
    output = capsys.readouterr()
    return code, output.out, output.err.splitlines()[-1]


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "8000",
        ":8000",
        "[]:8000",
        "127.0.0.1:",
        "127.0.0.1:http",
        "127.0.0.1:-1",
        "127.0.0.1:+80",
        "127.0.0.1:80.0",
        "127.0.0.1:８０",
        "127.0.0.1: 80",
        "http://127.0.0.1:8000",
        "127.0.0.1:8000/mcp",
        "[::1]",
        "",
    ],
)
def test_what_is_no_address_is_bad_usage(shop, capsys, address):
    """Issue: `--http HOST:PORT`; exit code 2, one line with what is expected and what came, nothing on stdout."""
    code, out, line = serve(capsys, "--http", address)
    assert (code, out) == (2, "")
    assert line.startswith("twofold: --http: expected HOST:PORT such as 127.0.0.1:8000")
    assert line.endswith(f"got {address!r}")


def test_a_long_address_is_shown_cut(shop, capsys):
    """Style: what came is shown, cut to 80 characters."""
    code, _, line = serve(capsys, "--http", "x" * 5000)
    assert (code, line.endswith(", got '" + "x" * 79)) == (2, True)


@pytest.mark.parametrize("port", ["65536", "70000", "80000", "99999"])
def test_a_port_there_is_none_of_is_bad_usage(shop, capsys, port):
    """Issue: exit code 2, and which there are."""
    code, out, line = serve(capsys, "--http", f"127.0.0.1:{port}")
    assert (code, out) == (2, "")
    assert line == f"twofold: port: expected a whole number from 0 to 65535, got {port}"


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("0.0.0.0:8000", "0.0.0.0"),
        ("[::]:8000", "::"),
        ("192.0.2.1:8000", "192.0.2.1"),
        ("[2001:db8::1]:8000", "2001:db8::1"),
        ("mcp.example.com:8000", "mcp.example.com"),
    ],
)
def test_a_wide_address_needs_the_names_it_is_asked_by(shop, capsys, address, host):
    """B3: anything wider than loopback has to say its allowed hosts; exit code 2, and the option that says them."""
    code, out, line = serve(capsys, "--http", address)
    assert (code, out) == (2, "")
    assert line.startswith(f"twofold: host {host!r} can be reached from other machines: say under which names")
    assert "--allow-host" in line


@pytest.mark.parametrize("address", ["127.0.0.1:8000", "[::1]:8000", "localhost:8000", "127.8.9.10:0"])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--path", "tools"], "path: expected a path such as '/mcp', got 'tools'"),
        (["--path", "/tools?x=1"], "path: expected a path such as '/mcp', got '/tools?x=1'"),
        (["--allow-host", "https://mcp.example.com"], "allowed_hosts: 'https://mcp.example.com' is a URL"),
        (["--allow-host", "a.example", "--allow-host", "b c"], "allowed_hosts: 'b c'"),
        (["--allow-host="], "allowed_hosts: ''"),
        (["--allow-origin", "app.example.com"], "allowed_origins: 'app.example.com' has no scheme"),
    ],
)
def test_options_that_cannot_hold_are_bad_usage_where_the_address_is_good(shop, capsys, address, options, said):
    """B3: a loopback address needs no names; what else cannot be is said before anything is bound."""
    code, out, line = serve(capsys, "--http", address, *options)
    assert (code, out, line[: len(said) + 9]) == (2, "", f"twofold: {said}")


@pytest.mark.parametrize(
    "options",
    [
        ["--path", "/tools"],
        ["--allow-host", "mcp.example.com"],
        ["--allow-origin", "https://app.example.com"],
        ["--stateless"],
        ["--stateless", "--path", "/tools"],
    ],
)
def test_options_for_http_alone_say_what_to_add(shop, capsys, options):
    """Issue: nothing is dropped without a word, and no server waits on stdin for what was meant for HTTP."""
    assert serve(capsys, *options) == (
        2,
        "",
        "twofold: --path, --allow-host, --allow-origin, --stateless and --workers are for serving over HTTP; add --http",
    )


@pytest.mark.parametrize(
    "options",
    [["--http"], ["--http", "127.0.0.1:0", "--path"], ["--http", "127.0.0.1:0", "--stateless=maybe"], ["--port", "80"]],
)
def test_options_that_are_incomplete_or_unknown_are_bad_usage(shop, capsys, options):
    """Issue: exit code 2 and one line that leads to the help."""
    code, out, line = serve(capsys, *options)
    assert (code, out, line.lower().endswith("see twofold --help")) == (2, "", True)


def test_a_server_that_is_not_there_is_told_before_its_address(shop, capsys):
    """Exit code 3: TARGET leads to no server."""
    code = main(["serve", "nowhere.py", "--http", "0.0.0.0:80"])
    assert (code, capsys.readouterr().err.startswith("twofold: there is no file 'nowhere.py'")) == (3, True)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_port_in_use_is_exit_code_3_and_says_what_to_do(shop, capsys, host):
    """Issue: the server cannot start; one line with where, and the choice there is."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, out, line = serve(capsys, "--http", f"{host}:{port}")
    assert (code, out) == (3, "")
    assert line == (
        f"twofold: cannot serve at {host}:{port}: Address already in use; "
        "stop what listens there, or choose another port (0 picks a free one)"
    )


@contextlib.contextmanager
def served(*options: str) -> Iterator[tuple[subprocess.Popen[str], str, int]]:
    """A process of its own that serves the shop: what it said, and its port."""
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys; from twofold.cli import main; sys.exit(main())", "serve", *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    watchdog = threading.Timer(BOUND_SECONDS, process.kill)
    watchdog.start()
    try:
        assert process.stderr is not None
        said = next((line for line in process.stderr if line.startswith("Serving at ")), "")
        found = re.match(r"Serving at http://127\.0\.0\.1:(\d+)/", said)
        assert found, "it ended without serving"
        yield process, said, int(found[1])
    finally:
        process.kill()
        process.communicate()
        watchdog.cancel()


def ask(port: int, method: str, path: str, headers: dict[str, str], message: object = None) -> http.client.HTTPResponse:
    """Ask once; the body is read already, as `response.text`."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=BOUND_SECONDS)
    with contextlib.closing(connection):
        body = None if message is None else json.dumps(message).encode()
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        response.text = response.read()
    return response


def test_every_option_holds_for_what_is_served(shop: Path):
    """Issue: path, hosts, origins and statelessness as said; SIGTERM ends it in order, exit code 0, stdout untouched."""
    host = {"Host": "mcp.example.com"}
    page = {"Origin": "https://app.example.com"}
    options = ["--path", "/shop/tools", "--allow-host", "mcp.example.com", "--allow-host", "*.shop.example"]
    options += ["--allow-origin", "https://app.example.com", "--stateless"]
    with served("shop.py", "--http", "127.0.0.1:0", *options) as (process, said, port):
        opened = ask(port, "POST", "/shop/tools", POSTED | host | page, INITIALIZE)
        other_host = ask(port, "POST", "/shop/tools", POSTED | {"Host": "a.shop.example:8443"}, INITIALIZE)
        refused = [
            ask(port, "POST", "/mcp", POSTED | host, INITIALIZE),
            ask(port, "POST", "/shop/tools", POSTED, INITIALIZE),
            ask(port, "POST", "/shop/tools", POSTED | host | {"Origin": "https://evil.example"}, INITIALIZE),
            ask(port, "GET", "/shop/tools", {"Accept": "text/event-stream"} | host),
        ]
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=BOUND_SECONDS)
    assert said == f"Serving at http://127.0.0.1:{port}/shop/tools (Ctrl-C ends it)\n"
    assert json.loads(opened.text)["result"]["serverInfo"]["name"] == "shop"
    assert (opened.status, opened.headers["Mcp-Session-Id"]) == (200, None)
    assert opened.headers["Access-Control-Allow-Origin"] == "https://app.example.com"
    assert other_host.status == 200
    assert [response.status for response in refused] == [404, 421, 403, 405]
    assert refused[-1].headers["Allow"] == "POST"
    assert (output, process.returncode) == ("", 0)


def test_without_options_it_serves_loopback_with_sessions_at_mcp(shop: Path):
    """Issue: safely by default: names of this machine alone, and both eras at one endpoint."""
    with served("shop.py", "--http", "127.0.0.1:0") as (process, said, port):
        opened = ask(port, "POST", "/mcp", POSTED, INITIALIZE)
        foreign = ask(port, "POST", "/mcp", POSTED | {"Host": "mcp.example.com"}, INITIALIZE)
        ended = ask(port, "DELETE", "/mcp", {"Mcp-Session-Id": str(opened.headers["Mcp-Session-Id"])})
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=BOUND_SECONDS)
    assert said == f"Serving at http://127.0.0.1:{port}/mcp (Ctrl-C ends it)\n"
    assert [response.status for response in (opened, foreign, ended)] == [200, 421, 204]
    assert (output, process.returncode) == ("", 0)


@pytest.mark.parametrize("address", ["::1:0", "[::1:0", "::1]:0", "127.0.0.1:00080000", "[[::1]]:0"])
def test_an_ipv6_address_stands_in_whole_brackets(address, capsys, tmp_path, monkeypatch):
    """An IPv6 address stands in brackets, whole ones."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text("from twofold import MCPServer\nmcp = MCPServer('s')\n")
    code = main(["serve", "shop.py", "--http", address, "--path", "x"])
    line = capsys.readouterr().err
    assert (code, line.startswith("twofold: --http: expected HOST:PORT")) == (2, True), line


def test_an_empty_option_is_not_dropped(capsys, tmp_path, monkeypatch):
    """Nothing is dropped without a word: an empty path is no path."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text("from twofold import MCPServer\nmcp = MCPServer('s')\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code = main(["serve", "shop.py", "--http", f"127.0.0.1:{taken.getsockname()[1]}", "--path="])
    assert code == 2
