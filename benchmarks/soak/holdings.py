"""What this process holds: memory, objects, tasks, threads, descriptors, children."""

import asyncio
import ctypes
import gc
import os
import threading
import types
from pathlib import Path

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TRACES = frozenset({types.FrameType, types.TracebackType, types.CoroutineType})
"""Of crashes that wait to be logged: bounded, and thousands for one that recursed."""
OWN = Path("/proc/self")
libc = ctypes.CDLL(None)


def count_holdings() -> dict[str, int]:
    """Count, after a collection, and with what is free given back, so that a slope is one of what is kept."""
    gc.collect()
    libc.malloc_trim(0)
    children = "".join(each.read_text() for each in OWN.glob("task/*/children"))
    return {
        "resident_bytes": int((OWN / "statm").read_text().split()[1]) * PAGE_BYTES,
        "objects": sum(type(each) not in TRACES for each in gc.get_objects()),
        "tasks": len(asyncio.all_tasks()),
        "threads": threading.active_count(),
        "descriptors": sum(1 for _ in (OWN / "fd").iterdir()),
        "children": len(children.split()),
    }
