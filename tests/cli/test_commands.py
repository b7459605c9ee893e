"""The commands: what stands on stdout, what on stderr, and the exit code."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from twofold import __version__
from twofold.cli import main
from twofold.cli.remote import name_target

TWOFOLD = [sys.executable, "-c", "import sys; from twofold.cli import main; sys.exit(main())"]


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    output = capsys.readouterr()
    return code, output.out, output.err


def test_list_gives_json_where_nobody_looks(shop, capsys):
    """Piped, the listing is the JSON of `tools/list`; the author's prints are not in it."""
    code, out, err = run(capsys, "list", "shop.py")
    tools = json.loads(out)["tools"]
    assert (code, [tool["name"] for tool in tools]) == (0, ["search", "fail", "refuse", "work", "blocks", "nothing"])
    assert tools[0]["annotations"] == {"readOnlyHint": True, "openWorldHint": False}
    assert tools[0]["inputSchema"]["required"] == ["query"]
    assert err == "printed while importing\n"


FOUND = [{"name": "mug", "price": 1.0}, {"name": "mug", "price": 1.0}]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], "both"),
        (["--json"], "both"),
        (["--face", "both"], "both"),
        (["--face", "program"], FOUND),
        (["--face=program", "--json"], FOUND),
        (["--json", "--face", "model"], [{"type": "text", "text": json.dumps(each, indent=2)} for each in FOUND]),
    ],
)
def test_call_gives_the_face_asked_for(shop, capsys, options, expected):
    """Both faces as a client gets them, or one of them; the exit code is 0."""
    code, out, err = run(capsys, "call", "shop.py", "search", '{"query": "mug"}', *options)
    got = json.loads(out)
    if expected == "both":
        assert (got["structuredContent"], got["isError"], got["verdict"]["status"]) == (FOUND, False, "valid")
        assert [json.loads(block["text"]) for block in got["content"]] == FOUND
    else:
        assert got == expected
    assert code == 0
    assert err == "printed while importing\nprinted while called\n"


def test_the_model_s_face_is_plain_text(shop, capsys):
    """`--face model` prints the text blocks as they are; what is no text is named."""
    code, out, _ = run(capsys, "call", "shop.py", "search", '{"query": "mug", "limit": 1}', "--face", "model")
    assert (code, out) == (0, '{\n  "name": "mug",\n  "price": 1.0\n}\n')
    code, out, _ = run(capsys, "call", "shop.py", "blocks", "--face", "model")
    assert (code, out) == (0, "a\n[image image/png, 3 bytes]\n")


def test_null_is_a_face_and_nothing_is_none(shop, capsys):
    """JSON null for programs is printed; where there is no structure that is said on stderr."""
    assert run(capsys, "call", "shop.py", "nothing", "--face", "program")[:2] == (0, "null\n")
    code, out, err = run(capsys, "call", "shop.py", "blocks", "--face", "program")
    assert (code, out) == (0, "")
    assert err.endswith("nothing for programs: the result has no structure\n")


def test_an_error_of_the_tool_is_exit_code_1(shop, capsys):
    """The tool's own text goes to stderr, or into the JSON that was asked for."""
    code, out, err = run(capsys, "call", "shop.py", "fail", "--face", "model")
    assert (code, out) == (1, "")
    assert err.endswith("out of [stock] \x1b[2J\n")
    code, out, _ = run(capsys, "call", "shop.py", "fail", "--json")
    assert (code, json.loads(out)["isError"]) == (1, True)
    code, out, err = run(capsys, "call", "shop.py", "search", '{"qeury": "mug"}', "--face", "model")
    assert (code, out) == (1, "")
    assert "argument 'query': missing" in err
    assert "did you mean 'query'?" in err
    code, out, err = run(capsys, "call", "shop.py", "refuse")
    assert (code, out) == (1, "")
    assert err.endswith("refuse: protocol error -31000: not now\n")


def test_log_messages_go_to_stderr(shop, capsys):
    """What a tool logs is shown beside, never within, its result; control characters are inert."""
    code, out, err = run(capsys, "call", "shop.py", "work")
    assert (code, json.loads(out)["structuredContent"]) == (0, {"done": 2})
    assert err == 'printed while importing\ninfo (work): {"step":1}\nwarning (work): half\ufffd[2J\n'


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["lst", "shop.py"], 'Unknown command "lst". Did you mean "list"? Available commands: serve, list, call; see twofold --help'),
        (["list"], "list needs a TARGET: module:object, file.py, a URL, or -- command arguments"),
        (["list", "--"], "after -- stands the command that starts the server, and there is none"),
        (["call", "shop.py"], "call needs a TOOL: twofold call TARGET TOOL '{…}', or twofold call TOOL '{…}' -- command"),
        (["list", "shop.py", "--jsn"], "Unknown option: --jsn. Did you mean --json? See twofold --help"),
        (["call", "shop.py", "search", "--face", "foo"], 'Invalid value "foo" for --face. Choose from: "model", "program", "both"; see twofold --help'),
        (["list", "python", "shop.py"], "list: too many words, from 'shop.py' on; a command that starts a server goes after --, as in twofold list -- python shop.py"),
        (["call", "shop.py", "search", '{"query":', '"mug"}'], "call: too many words, from '\"mug\"}' on; a command that starts a server goes after --, as in twofold list -- python shop.py; JSON stands in quotes, as one word"),
        (["serve", "shop.py", "127.0.0.1:8000"], "serve: too many words, from '127.0.0.1:8000' on; see twofold serve --help"),
        (["list", "127.0.0.1:8123/mcp"], "'127.0.0.1:8123/mcp' is an address; a URL says http:// too: http://127.0.0.1:8123/mcp"),
        (["call", "localhost:8123", "x"], "'localhost:8123' is an address; a URL says http:// too: http://localhost:8123/mcp"),
        (["call", "shop.py", "\udcff"], "the TOOL is no Unicode text, got '\\udcff'"),
        (["list", "http://[::1"], "'http://[::1' is no URL: Invalid IPv6 URL"),
        (["list", "[::1]:8123/"], "'[::1]:8123/' is an address; a URL says http:// too: http://[::1]:8123/mcp"),
        (["list", "shop.py", "--timeout", "0"], "--timeout: expected seconds, a number above 0, got 0"),
        (["call", "shop.py", "search", "--timeout", "nan"], "--timeout: expected seconds, a number above 0, got nan"),
        (["call", "shop.py", "search", "--timeout", "inf"], "--timeout: expected seconds, a number above 0, got inf"),
        (["call", "shop.py", "search", "--timeout", "soon"], 'Invalid value for --timeout: unable to convert "soon" into float; see twofold --help'),
        (["call", "shop.py", "search", "{"], "the arguments are no JSON (Input data was truncated), got '{'"),
        (["call", "shop.py", "search", '{"a": NaN}'], "the arguments are no JSON (JSON is malformed: invalid character (byte 6)), got '{\"a\": NaN}'"),
        (["call", "shop.py", "search", "[1]"], "the arguments are one JSON object, such as '{\"name\": \"mug\"}', got '[1]'"),
        (["call", "shop.py", "search", "[" * 100_000], "the arguments are no JSON (maximum recursion depth exceeded while deserializing an object), got '" + "[" * 79),
    ],
)  # fmt: skip
def test_bad_usage_is_exit_code_2_and_one_line(shop, capsys, arguments, line):
    """Nothing is loaded for a command line that cannot be meant; one line says what is wrong."""
    assert run(capsys, *arguments) == (2, "", f"twofold: {line}\n")


def test_an_unknown_tool_is_bad_usage_with_near_names(shop, capsys):
    """The nearest names, or all there are (A22)."""
    code, out, err = run(capsys, "call", "shop.py", "serch")
    assert (code, out) == (2, "")
    assert err.endswith("twofold: server 'shop' has no tool 'serch'; did you mean 'search'?\n")
    assert run(capsys, "call", "shop.py", "zzz")[2].endswith("it has search, fail, refuse, work, blocks, nothing\n")


@pytest.mark.parametrize("command", [["list"], ["serve"], ["call", "x"]])
def test_what_cannot_be_loaded_is_exit_code_3_and_one_line(shop, capsys, command):
    """A missing file, and a crash while importing, without a traceback."""
    shop.write_text("1 / 0")
    name, *rest = command
    assert run(capsys, name, "nowhere.py", *rest) == (
        3,
        "",
        f"twofold: there is no file 'nowhere.py' in {Path.cwd()}\n",
    )
    assert run(capsys, name, "shop.py", *rest) == (
        3,
        "",
        f"twofold: cannot load shop.py: ZeroDivisionError: division by zero ({shop}, line 1)\n",
    )


def test_a_server_that_cannot_start_is_exit_code_3(shop, capsys):
    """What the lifespan raises is the server's, not the tool's."""
    shop.write_text(
        "import contextlib\nfrom twofold import MCPServer\n"
        "@contextlib.asynccontextmanager\nasync def life(server):\n    raise OSError('no database')\n    yield\n"
        "mcp = MCPServer('shop', lifespan=life)\n@mcp.tool()\ndef t() -> int:\n    return 1\n"
    )
    for command, said in {
        "call": "server 'shop' in this process could not start: its lifespan failed (OSError: no database); mend it",
        "serve": "server 'shop' failed: OSError: no database",
    }.items():
        assert run(capsys, command, "shop.py", *(["t"] * (command == "call"))) == (3, "", f"twofold: {said}\n")
    assert run(capsys, "list", "shop.py")[0] == 0


@pytest.mark.filterwarnings("default")
def test_warnings_are_one_line(shop, capsys):
    """A warning about a definition is told with the author's line, without the source around it."""
    shop.write_text(
        "from twofold import MCPServer\nmcp = MCPServer('s')\n@mcp.tool(name='a b')\ndef t() -> int: return 1\n"
    )
    code, _, err = run(capsys, "list", "shop.py")
    assert code == 0
    assert err.startswith("twofold: warning: tool 'a b': its name is outside the recommended")
    assert err.count("\n") == 1


HELP = """\
Usage: twofold COMMAND

Serve, list and call typed MCP tools.

Commands:
  call: Call a tool and show its result: both faces in a terminal, JSON
      elsewhere.
  list: Show a server's tools: a table in a terminal, JSON elsewhere.
  serve: Serve a server's tools over stdio, until the client has gone; or over
      HTTP, until a signal ends it.
  --help, -h: Display this message and exit.
  --version: Display application version.

"""
CALL_HELP = """\
Usage: twofold call TARGET TOOL [JSON] [OPTIONS]
       twofold call TOOL [JSON] [OPTIONS] -- COMMAND…

Call a tool and show its result: both faces in a terminal, JSON elsewhere.

Progress and log messages go to stderr. The exit code is 0 for a result, 1 if
the tool reported an error, its result breaks what it promised, or nobody knows
what became of the call.

Arguments:
  TARGET: `module:object`, `file.py`, `file.py:name`, or a URL; left out where a
      command that starts a server stands at the end, after `--`.
  TOOL: The tool's name.
  JSON: Its arguments, a JSON object; {} if left out.

Options:
  --face model|program|both: What to show: the text for the model, the structure
      for programs, or both, as if left out.
  --json: JSON in a terminal too: the same for every kind of target, with what
      was found of the result.
  --timeout SECONDS: How long opening the connection and the call may take
      together; 300 if left out. Opening has some 30 of them at most.

"""
LIST_HELP = """\
Usage: twofold list TARGET [OPTIONS]
       twofold list [OPTIONS] -- COMMAND…

Show a server's tools: a table in a terminal, JSON elsewhere.

Arguments:
  TARGET: `module:object`, `file.py`, `file.py:name`, or a URL; left out where a
      command that starts a server stands at the end, after `--`.

Options:
  --json: JSON in a terminal too: the definitions as a client gets them.
  --timeout SECONDS: How long opening the connection and listing may take
      together; 300 if left out. Opening has some 30 of them at most.

"""
SERVE_HELP = """\
Usage: twofold serve TARGET [OPTIONS]

Serve a server's tools over stdio, until the client has gone; or over HTTP,
until a signal ends it.

Arguments:
  TARGET: `module:object`, `file.py`, or `file.py:name`.

Options:
  --http HOST:PORT: Serve over HTTP instead, at an address such as
      127.0.0.1:8000; port 0 picks a free one.
  --path PATH: Where the HTTP endpoint is; /mcp if left out.
  --allow-host NAME: A name that requests may be sent to, such as
      mcp.example.com; may be given several times. Names of this machine's
      loopback interface if not given, which is all that is reachable on
      127.0.0.1.
  --allow-origin ORIGIN: A web page that may ask, such as
      https://app.example.com; may be given several times.
  --stateless: Keep no sessions for clients of earlier revisions, as several
      processes behind one address need it.
  --workers N: Serve from so many processes, 1 to 64, and replace one that dies.
      Nothing is shared between them: this implies --stateless, and what the
      server keeps in memory, each worker keeps for itself.

"""


@pytest.mark.parametrize(
    ("command", "text"),
    [([], HELP), (["call"], CALL_HELP), (["list"], LIST_HELP), (["serve"], SERVE_HELP)],
    ids=["twofold", "call", "list", "serve"],
)
def test_the_help_is_wrapped_once_to_the_width_of_the_terminal(capsys, monkeypatch, command, text):
    """Commands, parameters and what stands for their values, as a snapshot, without Python's own defaults."""
    monkeypatch.setenv("COLUMNS", "80")
    assert run(capsys, *command, "--help") == (0, text, "")


def test_the_version_is_the_package_s(capsys):
    """One line, for scripts."""
    assert run(capsys, "--version") == (0, f"{__version__}\n", "")


def in_terminal(*arguments: str) -> tuple[int, str]:
    """Run the command with a terminal of 100 columns for stdout and stderr."""
    outer, inner = pty.openpty()
    environment = {**os.environ, "COLUMNS": "100", "TERM": "xterm", "NO_COLOR": "1"}
    process = subprocess.Popen([*TWOFOLD, *arguments], stdin=inner, stdout=inner, stderr=inner, env=environment)
    os.close(inner)
    chunks = []
    while True:
        try:
            chunk = os.read(outer, 65536)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        chunks.append(chunk)
    os.close(outer)
    text = b"".join(chunks).decode().replace("\r\n", "\n")
    return process.wait(), re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_a_terminal_gets_tables_and_a_progress_bar(shop):
    """A person sees the table, the bar while a tool reports progress, and both faces; markup stays text."""
    code, text = in_terminal("list", "shop.py")
    assert code == 0
    assert "┃ tool" in text
    assert "Find [red]" in text
    code, text = in_terminal("call", "shop.py", "work")
    assert code == 0
    assert "half [done]" in text
    assert "1 of 2" in text
    assert "┃ for the model" in text
    code, text = in_terminal("call", "shop.py", "fail")
    assert code == 1
    assert "out of [stock] \ufffd[2J" in text
    assert "\x1b[2J" not in text


def test_a_process_serves_and_ends_with_its_client(shop):
    """`twofold serve` answers on stdout with messages only, and loads no library of the command line for it."""
    shop.write_text(shop.read_text() + "\nprint('loaded', 'rich' in sys.modules, 'cyclopts' in sys.modules)\n")
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}}  # fmt: skip
    done = subprocess.run(
        [*TWOFOLD, "serve", "shop.py"],
        input=json.dumps(request) + "\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    (answer,) = done.stdout.splitlines()
    assert (done.returncode, json.loads(answer)["result"]["serverInfo"]["name"]) == (0, "shop")
    assert "loaded False False\n" in done.stderr


def test_ctrl_c_ends_quietly_with_130(shop):
    """A person who stops a call sees no traceback."""
    shop.write_text(
        "import asyncio\nfrom twofold import Context, MCPServer\nmcp = MCPServer('s')\n"
        "@mcp.tool()\nasync def wait(ctx: Context) -> None:\n    await ctx.info('waiting')\n    await asyncio.Event().wait()\n"
    )
    heeds_ctrl_c = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "  # not so in background
    command = [*TWOFOLD[:2], heeds_ctrl_c + TWOFOLD[2], "call", "shop.py", "wait"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr.readline() == "info (wait): waiting\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "")


def test_a_reader_that_has_gone_is_no_fault(shop):
    """`twofold list … | head` ends without a complaint."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        done = subprocess.run(
            [*TWOFOLD, "list", "shop.py"], stdout=closed, stderr=subprocess.PIPE, text=True, check=False, timeout=60
        )
    assert (done.returncode, done.stderr) == (141, "printed while importing\n")


def shell(script: str, **environment: str) -> tuple[int, str, str]:
    """Run the command by a shell, which can close and redirect streams."""
    line = f"twofold() {{ {sys.executable} -c 'import sys; from twofold.cli import main; sys.exit(main())' \"$@\"; }}; {script}"
    done = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, check=False, timeout=60, env={**os.environ, **environment}
    )
    return done.returncode, done.stdout, done.stderr


PLAIN = """
from twofold import MCPServer
mcp = MCPServer("shop")

@mcp.tool()
def price() -> dict:
    return {"prix": "9 \u20ac \U0001f642"}

@mcp.tool()
def huge() -> dict:
    return {"a": 10**5000}
"""


@pytest.mark.parametrize("command", ["list shop.py", "call shop.py price", "serve shop.py", "--help"])
def test_a_closed_stdout_is_one_line(shop, command):
    """Nobody can read a result then; the line on stderr says so."""
    shop.write_text(PLAIN)
    assert shell(f"twofold {command} >&-") == (
        74,
        "",
        "twofold: stdout is closed, so there is nowhere to write to\n",
    )


@pytest.mark.parametrize("command", ["list shop.py", "call shop.py price", "--help"])
def test_a_full_disk_is_one_line(shop, command):
    """What could not be written is never taken for a success."""
    shop.write_text(PLAIN)
    assert shell(f"twofold {command} >/dev/full") == (
        74,
        "",
        "twofold: the output could not be written: OSError: [Errno 28] No space left on device\n",
    )


def test_a_closed_stderr_changes_no_result(shop):
    """Messages go nowhere; a file that the server opens does not take their place."""
    shop.write_text(PLAIN + "kept = open('kept.txt', 'w')\nimport sys\nprint('lost', file=sys.stderr)\n")
    code, out, _ = shell("twofold call shop.py price --face program 2>&-")
    assert (code, json.loads(out)) == (0, {"prix": "9 \u20ac \U0001f642"})
    assert Path("kept.txt").read_text() == ""
    assert shell("twofold list nowhere.py 2>&-")[:2] == (3, "")


@pytest.mark.parametrize(
    ("face", "out"),
    [
        ("program", '{\n  "prix": "9 \\u20ac \\ud83d\\ude42"\n}\n'),
        ("model", '{\n  "prix": "9 \\u20ac \\U0001f642"\n}\n'),
    ],
)
def test_an_encoding_without_the_characters_gets_escapes(shop, face, out):
    """JSON stays JSON, by its own escapes; text gets Python's."""
    shop.write_text(PLAIN)
    assert shell(f"twofold call shop.py price --face {face}", PYTHONIOENCODING="ascii") == (0, out, "")


def test_a_result_that_json_cannot_hold_is_the_tool_s_fault(shop, capsys):
    """Exit code 1, as for any fault of a tool, and not that of a server which cannot start."""
    shop.write_text(PLAIN)
    code, out, err = run(capsys, "call", "shop.py", "huge", "--face", "model")
    assert (code, out) == (1, "")
    assert err == "Error executing tool huge: a: an integer of more digits than a reader takes; send it as text\n"


def test_importing_twofold_loads_no_command_line():
    """Servers do not pay for libraries that only the command line uses."""
    code = "import sys, twofold; print([name for name in ('cyclopts', 'rich', 'httpx', 'httpx2', 'uvicorn') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_command_after_two_dashes_is_started_asked_and_ended(shop, capsys):
    """Both faces, the verdict and the revision; whatever its words look like, they are the command's."""
    command = ["--", sys.executable, "-c", "import shop; shop.mcp.run()"]
    code, out, err = run(capsys, "call", "search", '{"query": "mug"}', *command)
    answer = json.loads(out)
    assert (code, answer["verdict"]["status"], answer["isError"]) == (0, "valid", False)
    assert err.endswith("(revision 2026-07-28); result valid\n")
    code, out, _ = run(capsys, "list", *command)
    assert (code, "search" in [tool["name"] for tool in json.loads(out)["tools"]]) == (0, True)


def test_a_server_that_cannot_be_reached_is_exit_code_3(capsys):
    """One line that says what is wrong and what to do."""
    code, out, err = run(capsys, "list", "http://127.0.0.1:1/mcp")
    assert (code, out) == (3, "")
    assert (
        err
        == "twofold: http://127.0.0.1:1/mcp: nothing listens there; start the server, or mend host and port in the URL\n"
    )
    code, out, err = run(capsys, "call", "x", "--", "/no/such/program")
    assert (code, out, "/no/such/program" in err) == (3, "", True)


def test_a_result_that_breaks_its_contract_is_shown_and_exit_code_1(tmp_path, monkeypatch, capsys):
    """Whoever decides whether a server keeps its word sees what it sent, and what is wrong with it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "liar.py").write_text(
        "import json, sys\n"
        "tool = {'name': 'count', 'inputSchema': {'type': 'object'}, 'outputSchema': {'type': 'object', 'required': ['n']}}\n"
        "for line in sys.stdin:\n"
        "    message = json.loads(line)\n"
        "    results = {'initialize': {'protocolVersion': '2025-11-25', 'capabilities': {}, 'serverInfo': {'name': 'l', 'version': '1'}},\n"
        "               'tools/list': {'tools': [tool]}, 'tools/call': {'content': [], 'structuredContent': {'m': 1}}}\n"
        "    if 'id' in message:\n"
        "        result = results.get(message['method'])\n"
        "        said = {'result': result} if result else {'error': {'code': -32601, 'message': 'no'}}\n"
        "        print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], **said}), flush=True)\n"
    )
    code, out, err = run(capsys, "call", "count", "--", sys.executable, "liar.py")
    assert (code, json.loads(out)["structuredContent"], json.loads(out)["verdict"]["status"]) == (
        1,
        {"m": 1},
        "invalid",
    )
    assert "l 1 (revision 2025-11-25); result invalid" in err


@pytest.mark.parametrize("options", [[], ["--face", "program"]], ids=["both", "program"])
@pytest.mark.parametrize("tool", ["search", "fail", "work", "nothing", "blocks", "refuse", "unknown"])
def test_a_target_s_kind_changes_nothing_that_a_script_reads(shop, capsys, tool, options):
    """What stands on stdout and the exit code are the same for a file and for a command."""
    asked = ["call", tool, json.dumps({"query": "mug"} if tool == "search" else {}), *options]
    command = [*asked, "--", sys.executable, "-c", "import shop; shop.mcp.run()"]
    assert run(capsys, "call", "shop.py", *asked[1:])[:2] == run(capsys, *command)[:2]


def test_json_says_whether_a_result_is_an_error(shop, capsys):
    """`isError` is there in every result, as is what was found of it, and our own wrapper is not."""
    shop.write_text(PLAIN + "\n@mcp.tool()\ndef three() -> int:\n    return 3\n")
    assert json.loads(run(capsys, "call", "shop.py", "three")[1]) == {
        "content": [{"type": "text", "text": "3"}],
        "isError": False,
        "structuredContent": 3,
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "shop", "version": "0.0.0"}},
        "verdict": {"status": "valid", "problems": [], "reason": ""},
    }


MUTE = [sys.executable, "-c", "import time; time.sleep(600)"]


def test_the_timeout_bounds_the_opening(capsys):
    """A command that never answers is given up after `--timeout` seconds: exit code 3, and what may be wrong."""
    code, out, err = run(capsys, "list", "--timeout", "0.5", "--", *MUTE)
    assert (code, out) == (3, "")
    assert err == (
        f"twofold: server '{MUTE[0]} -c \"{MUTE[2]}\"' did not open a connection within 0.5 seconds; "
        "see whether it is an MCP server, or give it longer with --timeout\n"
    )


SLOW = """
import asyncio
from twofold import MCPServer
mcp = MCPServer("slow")

@mcp.tool()
async def wait() -> None:
    await asyncio.Event().wait()
"""


@pytest.mark.parametrize("kind", ["file", "command"])
def test_the_timeout_bounds_the_call(shop, capsys, kind):
    """A call without an answer in time may have been carried out: exit code 1, wherever the server runs."""
    Path("slow.py").write_text(SLOW)
    target = {
        "file": ["slow.py", "wait"],
        "command": ["wait", "--", sys.executable, "-c", "import slow; slow.mcp.run()"],
    }
    code, out, err = run(capsys, "call", "--timeout", "3", *target[kind])
    assert (code, out) == (1, "")
    assert err.startswith("tool 'wait' may have been called, but there is no answer: ")


def test_a_person_is_told_what_is_waited_for(shop):
    """After some seconds one line says so in a terminal, without what may be secret; a script's stderr stays as it was."""
    Path("slow.py").write_text(SLOW)
    command = ["list", "--timeout", "2.5", "--", *MUTE, "--token=abc"]
    code, text = in_terminal(*command)
    assert (code, text.count("waiting for"), "abc" in text) == (3, 1, False)
    assert "--token=…', 2.5 seconds at most; Ctrl-C ends it" in " ".join(text.split())
    code, text = in_terminal("call", "slow.py", "wait", "--timeout", "2.5")
    assert (code, text.splitlines()[0]) == (1, "waiting for server 'slow', 2.5 seconds at most; Ctrl-C ends it")
    done = subprocess.run([*TWOFOLD, *command], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, "waiting" in done.stderr, done.stderr.count("\n")) == (3, False, 1)


def test_a_url_is_named_without_its_secrets():
    """What is waited for is shown to whoever looks."""
    assert name_target("https://ann:word@example.com:8000/mcp?key=abc#x") == "https://example.com:8000/mcp"


def test_the_command_is_a_module_too(shop):
    """`python -m twofold`, as hosts are configured that know an interpreter alone."""
    done = subprocess.run(
        [sys.executable, "-m", "twofold", "call", "shop.py", "nothing", "--face", "program"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "null\n")


def test_a_server_that_refuses_to_list_is_one_line(tmp_path, monkeypatch, capsys):
    """Exit code 3, with the server's own words and no name of a class."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mute.py").write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    message = json.loads(line)\n"
        "    described = {'protocolVersion': '2025-11-25', 'capabilities': {}, 'serverInfo': {'name': 'm', 'version': '1'}}\n"
        "    if 'id' in message:\n"
        "        is_opening = message['method'] == 'initialize'\n"
        "        said = {'result': described} if is_opening else {'error': {'code': -31000, 'message': 'not today'}}\n"
        "        print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], **said}), flush=True)\n"
    )
    line = "twofold: the server does not list its tools: error -31000: not today\n"
    assert run(capsys, "list", "--", sys.executable, "mute.py") == (3, "", line)
