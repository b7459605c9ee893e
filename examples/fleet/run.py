"""Start a fleet: two workers for each of two regions, and nginx in front, which routes by `Mcp-Param-Region`.

`python examples/fleet/run.py [PORT]` says where it serves, until Ctrl-C or SIGTERM ends all of it. nginx is looked for
at `TWOFOLD_NGINX`, then on the `PATH`.
"""

import contextlib
import os
import queue
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

HERE = Path(__file__).parent
REGIONS = ("eu", "us")
WORKERS = 2
END_SECONDS = 30
LOOK_SECONDS = 0.1


def main(port: int) -> str | None:
    """Run everything until a signal; gives what went wrong, if something did."""
    nginx = os.environ.get("TWOFOLD_NGINX") or shutil.which("nginx")
    if nginx is None:
        return (
            "nginx is not on the PATH: install it (Debian: apt-get install nginx), or say where it is in TWOFOLD_NGINX"
        )
    told_to_end = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: told_to_end.set())
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fleet-")))
        machines = {region: stack.enter_context(machine(region, folder)) for region in REGIONS}
        ports = {region: port_of(process) for region, process in machines.items()}
        front = port or free_port()
        balancer = stack.enter_context(balancing(nginx, folder, {**ports, "front": front}))
        processes = {**machines, "nginx": balancer}
        while not told_to_end.is_set() and not is_listening(front):
            check_all(processes)
        print(f"Serving at http://127.0.0.1:{front}/mcp (Ctrl-C ends it)")
        for region, process in machines.items():
            print(f"{region}: port {ports[region]}, process {process.pid} and {WORKERS} workers")
        print(f"{folder}: access.log says where each request went, journal what the tools did", flush=True)
        while not told_to_end.wait(LOOK_SECONDS):
            check_all(processes)
    return None


@contextlib.contextmanager
def machine(region: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Serve a region, as one machine of it would."""
    command = [sys.executable, "-P", "-c", "import sys; from twofold.cli import main; sys.exit(main())", "serve"]
    options = ["--http", "127.0.0.1:0", "--workers", str(WORKERS)]
    environment = {**os.environ, "FLEET_REGION": region, "FLEET_JOURNAL": str(folder / "journal")}
    with running([*command, str(HERE / "shipping.py"), *options], env=environment, stderr=subprocess.PIPE) as process:
        yield process


@contextlib.contextmanager
def balancing(nginx: str, folder: Path, ports: Mapping[str, int]) -> Iterator[subprocess.Popen[str]]:
    """Run nginx in a folder, with the template's ports filled in."""
    template = (HERE / "nginx.conf.template").read_text()
    configuration = re.sub(r"@(\w+)@", lambda found: str(ports[found[1]]), template)
    (folder / "nginx.conf").write_text(configuration)
    # -e: where it writes before it has read its configuration; else a place that takes root.
    command = [nginx, "-p", str(folder), "-c", "nginx.conf", "-e", "stderr"]
    with running(command, end=signal.SIGQUIT) as process:  # which lets requests finish
        yield process


@contextlib.contextmanager
def running(
    command: list[str],
    *,
    env: Mapping[str, str] | None = None,
    stderr: int | None = None,
    end: signal.Signals = signal.SIGTERM,
) -> Iterator[subprocess.Popen[str]]:
    """Run a process that ends with the block. A Ctrl-C reaches this program alone, which ends things in order."""
    process = subprocess.Popen(  # noqa: S603 - what this file says, and nginx
        command, env=env, stdin=subprocess.DEVNULL, stderr=stderr, text=True, start_new_session=True
    )
    try:
        yield process
    finally:
        process.send_signal(end)
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def port_of(process: subprocess.Popen[str]) -> int:
    """Read where a server says that it serves; what it says later goes to this program's stderr."""
    told: queue.SimpleQueue[int | None] = queue.SimpleQueue()
    threading.Thread(target=pass_on, args=(process.stderr, told), daemon=True).start()
    port = told.get()
    if port is None:
        raise SystemExit("a server ended before it served; what it said stands above")
    return port


def pass_on(lines: IO[str], told: "queue.SimpleQueue[int | None]") -> None:
    """Write on what a server says, but for the port, which is told; None where it says none."""
    with lines:
        for line in lines:
            found = re.match(r"Serving at http://127\.0\.0\.1:(\d+)/", line)
            if found is not None:
                told.put(int(found[1]))
            else:
                sys.stderr.write(line)
                sys.stderr.flush()
    told.put(None)


def free_port() -> int:
    """Find a port that nobody uses now."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def is_listening(port: int) -> bool:
    """Tell whether somebody listens at a port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=LOOK_SECONDS).close()
    except OSError:
        return False
    return True


def check_all(processes: Mapping[str, subprocess.Popen[str]]) -> None:
    """End this program, and with it the rest, where one of the processes has ended."""
    for name, process in processes.items():
        if process.poll() is not None:
            raise SystemExit(f"{name} ended with status {process.returncode}; what it said stands above")


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
