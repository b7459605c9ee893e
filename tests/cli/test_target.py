"""TARGET: every form that leads to a server, and a clear line for each that does not."""

from pathlib import Path

import pytest

from twofold.cli.failures import NotLoaded
from twofold.cli.target import load_target

SERVER = "from twofold import MCPServer\n"


def refusal(target: str) -> str:
    with pytest.raises(NotLoaded) as caught:
        load_target(target)
    return str(caught.value)


@pytest.mark.parametrize("target", ["shop.py", "./shop.py", "shop.py:mcp", "shop:mcp", "shop:holder.inner"])
def test_every_form_leads_to_the_server(shop, target):
    """A file with one server, a file and a name, a module and a dotted attribute."""
    assert load_target(target).name == "shop"


def test_a_file_is_loaded_from_anywhere_with_its_neighbours(tmp_path, monkeypatch):
    """The file's own folder can be imported from, whatever the current directory, whatever the file's name."""
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "neighbour_of_json.py").write_text("NAME = 'next door'")
    (folder / "json.py").write_text(SERVER + "from neighbour_of_json import NAME\nmcp = again = MCPServer(NAME)")
    monkeypatch.chdir("/")
    assert load_target(str(folder / "json.py")).name == "next door"


def test_the_current_directory_can_be_imported_from(tmp_path, monkeypatch):
    """`module:object` works for packages beside the person, as `python -m` does."""
    (tmp_path / "shop_package").mkdir()
    (tmp_path / "shop_package" / "server.py").write_text(SERVER + "mcp = MCPServer('packaged')")
    monkeypatch.chdir(tmp_path)
    assert load_target("shop_package.server:mcp").name == "packaged"


def test_a_server_is_not_run_by_loading(tmp_path, monkeypatch):
    """What stands under `if __name__ == "__main__"` is not run."""
    (tmp_path / "guarded.py").write_text(SERVER + "mcp = MCPServer('g')\nif __name__ == '__main__':\n    mcp.run()")
    monkeypatch.chdir(tmp_path)
    assert load_target("guarded.py").name == "g"


def test_what_a_module_prints_stays_off_stdout(shop, capfd):
    """Prints and native output while importing go to stderr: stdout is for results."""
    shop.write_text(shop.read_text() + "\nimport os\nos.write(1, b'native')\n")
    load_target("shop.py")
    output = capfd.readouterr()
    assert output.out == ""
    assert "printed while importing" in output.err
    assert "native" in output.err


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("nowhere.py", "there is no file 'nowhere.py' in {cwd}"),
        ("sub/nowhere.py:mcp", "there is no file 'sub/nowhere.py' in {cwd}"),
        ("nowhere", "there is no file 'nowhere' in {cwd}; give module:object, file.py or file.py:name"),
        ("shop", "there is no file 'shop' in {cwd}; did you mean 'shop.py'?"),
        ("./shop", "there is no file 'shop' in {cwd}; did you mean 'shop.py'?"),
        ("./shop:mcp", "there is no file 'shop' in {cwd}; did you mean 'shop.py'?"),
        (":mcp", "':mcp' is incomplete; give module:object, file.py or file.py:name"),
        ("shop:", "'shop:' is incomplete; give module:object, file.py or file.py:name"),
        (
            "nowhere:mcp",
            "there is no module 'nowhere', neither in {cwd} nor installed; give module:object, file.py or file.py:name",
        ),
        ("shop.py:mpc", "shop.py has no 'mpc'; did you mean 'mcp'?"),
        ("shop:zzzz", "shop has no 'zzzz'; say shop:mcp"),
        ("shop:holder.outer", "shop has no 'holder.outer'; say shop:mcp"),
        ("shop:Product", "shop:Product is a ModelMetaclass, not an MCPServer; say shop:mcp"),
    ],
)
def test_what_is_not_there_is_named(shop, target, message):
    """A missing file, module or object is one line that says what to write instead."""
    assert refusal(target) == message.format(cwd=Path.cwd())


def test_several_servers_are_listed(tmp_path, monkeypatch):
    """A file with more than one server, or none, says how to go on."""
    monkeypatch.chdir(tmp_path)
    Path("two.py").write_text(SERVER + "a = MCPServer('a')\nb = MCPServer('b')\nalso_a = a")
    Path("none.py").write_text("x = 1")
    assert refusal("two.py") == "two.py has 2 servers; say two.py:a or two.py:b"
    assert (
        refusal("none.py") == "none.py has no MCPServer at its top level; give module:object, file.py or file.py:name"
    )
    assert load_target("two.py:b").name == "b"


@pytest.mark.parametrize(
    ("code", "fault", "line"),
    [
        ("x = 1\nundefined", "NameError: name 'undefined' is not defined", 2),
        ("def f(:", "SyntaxError: invalid syntax", 1),
        ("import json\njson.loads('{')", "JSONDecodeError: Expecting property name", 2),
        ("raise SystemExit", "SystemExit", 1),
        ("raise ValueError('two\\nlines')", "ValueError: two lines", 1),
        ("class Stop(BaseException): pass\nraise Stop('now')", "Stop: now", 2),
        ("import asyncio\nraise asyncio.CancelledError", "CancelledError", 2),
        (
            "class Mute(Exception):\n    def __str__(self): raise KeyError\nraise Mute",
            "Mute: (its text cannot be read: its __str__ fails)",
            3,
        ),
        ("import not_installed_at_all", "ModuleNotFoundError: No module named 'not_installed_at_all'", 1),
        (
            SERVER + "MCPServer('x').tool(name='')(print)",
            "InvalidDefinition: a tool's name is empty (''); give it one with name=",
            2,
        ),
    ],
)
@pytest.mark.parametrize("form", ["crashing.py", "crashing:mcp"])
def test_a_crash_while_importing_is_one_line_with_its_place(tmp_path, monkeypatch, code, fault, line, form):  # noqa: PLR0917
    """The exception's own line and the author's line that led to it, no traceback."""
    monkeypatch.chdir(tmp_path)
    Path("crashing.py").write_text(code)
    message = refusal(form)
    assert message.startswith(f"cannot load {form.removesuffix(':mcp')}: {fault}")
    assert message.endswith(f"crashing.py, line {line})")
    assert "\n" not in message


def test_a_crash_while_the_name_is_looked_up_is_one_line_too(tmp_path, monkeypatch):
    """A module's `__getattr__` is the author's code."""
    monkeypatch.chdir(tmp_path)
    Path("lazy.py").write_text("def __getattr__(name):\n    raise OSError('no licence')\n")
    assert refusal("lazy.py:mcp").startswith("cannot load lazy.py: OSError: no licence (")


def test_a_program_is_no_file_of_python(tmp_path):
    """Whoever names an interpreter is told where a command goes."""
    program = tmp_path / "python"
    program.write_bytes(b"\x7fELF\x02\x01\x01\0\0")
    said = "a command that starts a server goes after --, as in twofold list -- python shop.py"
    assert refusal(str(program)) == f"{str(program)!r} is no Python file; {said}"
