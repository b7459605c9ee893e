"""The log of a serving process: written by a thread of its own, within bounds."""

import gc
import logging
import threading
import weakref

from twofold.server.lifecycle import MAX_LOG_TRACES, _LogThread


class Slow(logging.Handler):
    """Writes nothing until it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_write = threading.Event()
        self.written: list[tuple[str, bool]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.may_write.wait(20)
        self.written.append((record.getMessage(), bool(record.exc_info)))


class Local:
    """Stands for what a failed call had in its variables."""


def test_a_log_that_is_behind_keeps_few_traces_and_every_message():
    """A trace keeps all variables of the call that failed: found by the soak test, with calls that recurse."""
    logger, slow, kept = logging.getLogger("twofold"), Slow(), []
    logger.addHandler(slow)
    logger.propagate = False  # pytest keeps every record that it sees

    def fail() -> None:
        local = Local()
        kept.append(weakref.ref(local))
        raise ValueError("no")

    try:
        with _LogThread() as log:
            for number in range(100):
                try:
                    fail()
                except ValueError:
                    logger.exception("call %d failed", number)
            gc.collect()
            assert sum(each() is not None for each in kept) == MAX_LOG_TRACES
            slow.may_write.set()
            assert log.finish()
    finally:
        logger.removeHandler(slow)
        logger.propagate = True
    left_out = " (its trace was left out: the log is behind)"
    assert slow.written == [
        (f"call {number} failed" + ("" if number < MAX_LOG_TRACES else left_out), number < MAX_LOG_TRACES)
        for number in range(100)
    ]
    gc.collect()
    assert [each() for each in kept] == [None] * 100
