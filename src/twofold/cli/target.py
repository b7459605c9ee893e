"""From TARGET on the command line to a server: `module:object`, `file.py`, `file.py:name`."""

import contextlib
import importlib
import importlib.machinery
import importlib.util
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from twofold.cli.failures import NotLoaded, one_line
from twofold.server.mcpserver import MCPServer
from twofold.tools.checks.complaints import PACKAGE
from twofold.tools.checks.names import near_names

FORMS = "give module:object, file.py or file.py:name"
COMMAND_FORM = "a command that starts a server goes after --, as in twofold list -- python shop.py"
_HEAD_BYTES = 1024
"""So much of a program holds a zero byte, which no Python file has."""


def load_target(target: str) -> MCPServer:
    """Load a server.

    Args:
        target: `module:object` (a dotted attribute too; the current directory can be imported from), or a
            file, followed by `:name` where it has several servers.

    Raises:
        NotLoaded: There is no such file, module or object, importing it failed, or it is no server.
    """
    place, name = _split(target)
    is_file = place.endswith(".py") or os.sep in place or Path(place).is_file()
    if not is_file and name is None:
        raise NotLoaded(f"there is no file {place!r} in {Path.cwd()}; {_hint_of_file(place) or FORMS}")
    with own_output_only():
        module = _import_file(Path(place)) if is_file else _import_module(place)
    return _find_named(module, place, name) if name is not None else _find_only(module, place)


@contextlib.contextmanager
def own_output_only() -> Iterator[None]:
    """Send to stderr what the author's code, and processes it starts, would write to stdout.

    What stands on stdout is the command's own, to be read by programs.
    """
    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)


def _split(target: str) -> tuple[str, str | None]:
    if Path(target).is_file():
        return target, None
    place, colon, name = target.rpartition(":")
    if not colon or (len(place) == 1 and name.startswith(("\\", "/"))):  # a Windows drive
        return target, None
    if not place or not name:
        raise NotLoaded(f"{target!r} is incomplete; {FORMS}")
    return place, name


def _hint_of_file(place: str) -> str:
    """Name the file that was meant by its name without `.py`, if it is there."""
    meant = f"{place}.py"
    return f"did you mean {meant!r}?" if Path(meant).is_file() else ""


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        hint = _hint_of_file(str(path))
        raise NotLoaded(f"there is no file {str(path)!r} in {Path.cwd()}{'; ' if hint else ''}{hint}")
    with path.open("rb") as file:
        is_program = b"\0" in file.read(_HEAD_BYTES)
    if is_program:  # such as an interpreter, whose argument was meant to be the server
        raise NotLoaded(f"{str(path)!r} is no Python file; {COMMAND_FORM}")
    path = path.resolve()
    sys.path.insert(0, str(path.parent))  # as Python does for a script: it may import its neighbours
    name = path.stem if path.stem not in sys.modules else f"twofold_target_{path.stem}"
    spec = importlib.util.spec_from_loader(name, importlib.machinery.SourceFileLoader(name, str(path)))
    if spec is None or spec.loader is None:
        raise NotLoaded(f"{str(path)!r} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pydantic look annotations up there
    loader = spec.loader
    _run(lambda: loader.exec_module(module), what=path.name)
    return module


def _import_module(name: str) -> ModuleType:
    sys.path.insert(0, str(Path.cwd()))
    found: list[ModuleType] = []
    try:
        _run(lambda: found.append(importlib.import_module(name)), what=name)
    except NotLoaded as failure:
        cause = failure.__cause__
        if isinstance(cause, ModuleNotFoundError) and cause.name and f"{name}.".startswith(f"{cause.name}."):
            raise NotLoaded(
                f"there is no module {cause.name!r}, neither in {Path.cwd()} nor installed; {FORMS}"
            ) from None
        raise
    return found[0]


def _run(load: Callable[[], object], *, what: str) -> None:
    """Run the author's module; whatever it raises becomes one line that says where."""
    try:
        load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the author's code, and any kind of end
        raise NotLoaded(f"cannot load {what}: {one_line(error)}{_where(error)}") from error


def _where(error: BaseException) -> str:
    """Name the last line of the author's own that led to an error."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({error.filename}, line {error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    foreign = (PACKAGE, sysconfig.get_path("stdlib"), "<")
    installed = f"{os.sep}site-packages{os.sep}"
    own = [frame for frame in frames if not frame.filename.startswith(foreign) and installed not in frame.filename]
    return f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""


def _find_named(module: ModuleType, place: str, name: str) -> MCPServer:
    found: Any = module
    for step in name.split("."):
        got = _look_up(found, step, what=place)
        if not got:
            near = near_names(step, [each for each in dir(found) if not each.startswith("__")])
            hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else _servers_hint(module, place)
            raise NotLoaded(f"{place} has no {name!r}{hint}")
        (found,) = got
    if not isinstance(found, MCPServer):
        raise NotLoaded(f"{place}:{name} is a {type(found).__name__}, not an MCPServer{_servers_hint(module, place)}")
    return found


def _look_up(holder: Any, name: str, *, what: str) -> list[Any]:
    """Give an attribute, if there is one; finding it may run the author's code, a module's `__getattr__`, say."""
    found: list[Any] = []

    def look_up() -> None:
        with contextlib.suppress(AttributeError):
            found.append(getattr(holder, name))

    _run(look_up, what=what)
    return found


def _find_only(module: ModuleType, place: str) -> MCPServer:
    servers = _servers(module)
    if len(servers) == 1:
        return next(iter(servers.values()))
    if not servers:
        raise NotLoaded(f"{place} has no MCPServer at its top level; {FORMS}")
    raise NotLoaded(f"{place} has {len(servers)} servers{_servers_hint(module, place)}")


def _servers(module: ModuleType) -> dict[str, MCPServer]:
    """Find the servers at a module's top level; one with two names counts once."""
    found: dict[str, MCPServer] = {}
    for name, value in vars(module).items():
        if isinstance(value, MCPServer) and all(value is not known for known in found.values()):
            found[name] = value
    return found


def _servers_hint(module: ModuleType, place: str) -> str:
    names = list(_servers(module))
    return f"; say {' or '.join(f'{place}:{name}' for name in names)}" if names else ""
