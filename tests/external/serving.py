"""A server's own process over HTTP on a loopback port, for programs nobody here wrote."""

import contextlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

TWOFOLD = Path(sys.executable).with_name("twofold")
START_SECONDS = 60  # generous: the machine is shared; a server that has ended is noticed at once
END_SECONDS = 30


@contextlib.contextmanager
def served_over_http(target: Path, *, log: Path) -> Iterator[str]:
    """Run `twofold serve TARGET --http 127.0.0.1:0` and give the URL it says; its output goes to `log`.

    Raises:
        AssertionError: It does not serve, does not end well when told to, or printed more than where it serves.
    """
    with log.open("wb") as out:
        process = subprocess.Popen(
            [TWOFOLD, "serve", target, "--http", "127.0.0.1:0"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        yield wait_for_url(process, log)
    finally:
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    printed = log.read_text()
    assert (process.returncode, printed.count("\n")) == (0, 1), printed


def wait_for_url(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        said = re.search(r"^Serving at (\S+) ", log.read_text(), re.MULTILINE)
        if said is not None:
            return said[1]
        assert process.poll() is None, f"the server ended, status {process.returncode}:\n{log.read_text()}"
        time.sleep(0.05)  # a file tells nobody that it has grown
    raise AssertionError(f"the server does not serve after {START_SECONDS} s:\n{log.read_text()}")
