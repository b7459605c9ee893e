"""A server's lifespan held open for an application: by a task of its own, once on each event loop, and anew after its end."""

import asyncio
import contextlib
import contextvars

import pytest

from twofold import MCPServer
from twofold.transports.http.lifespan import Lifespan

_who: contextvars.ContextVar[str] = contextvars.ContextVar("_who", default="nobody")


class Record:
    """What a server's lifespan did; it raises what it is told to, and waits before it closes if it is told to."""

    def __init__(self, *faults: BaseException, at_end: BaseException | None = None) -> None:
        self.events: list[str] = []
        self.faults = list(faults)
        self.at_end = at_end
        self.may_close = asyncio.Event()
        self.may_close.set()
        self.lifespan = Lifespan(MCPServer("s", lifespan=self._live))

    @contextlib.asynccontextmanager
    async def _live(self, server):
        if self.faults:
            raise self.faults.pop(0)
        number = sum(event.startswith("open") for event in self.events) + 1
        self.events.append(f"open {number} for {_who.get()}")
        try:
            yield number
        finally:
            self.events.append(f"closing {number}")
            await self.may_close.wait()
            self.events.append(f"closed {number}")
            if self.at_end is not None:
                raise self.at_end


async def test_it_is_opened_once_for_all_who_come():
    """Issue: it works where lifespan events do not reach it; also where many come before it is open."""
    record = Record()
    offers = await asyncio.gather(*(record.lifespan.open() for _ in range(5)))
    offers.append(await record.lifespan.open())
    await record.lifespan.close()
    assert {offer.lifespan for offer in offers} == {1}
    assert record.events == ["open 1 for nobody", "closing 1", "closed 1"]


async def test_it_does_not_run_in_the_context_of_who_comes_first():
    """Decision 14: what a request set (its user, its trace) is not the whole server's for ever."""
    record = Record()
    _who.set("the first request")
    await record.lifespan.open()
    await record.lifespan.close()
    assert (record.events[0], _who.get()) == ("open 1 for nobody", "the first request")


@pytest.mark.parametrize("fault", [OSError("no database"), ValueError("wrong")])
async def test_what_it_raises_at_first_is_raised_to_all_who_wait_and_tried_again(fault):
    """B3: a database that was down when the first came is asked for again by the next."""
    record = Record(fault)
    raised = await asyncio.gather(*(record.lifespan.open() for _ in range(3)), return_exceptions=True)
    offer = await record.lifespan.open()
    await record.lifespan.close()
    assert (raised, offer.lifespan) == ([fault] * 3, 1)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (SystemExit(3), "it raised SystemExit"),
        (KeyboardInterrupt(), "it raised KeyboardInterrupt"),
        (asyncio.CancelledError(), "it raised CancelledError"),
        (GeneratorExit(), "it raised GeneratorExit"),
    ],
)
async def test_what_would_end_the_event_loop_is_raised_as_an_error(fault, said):
    """B3: an author's `sys.exit` in a lifespan is a failed start, not the end of whatever else runs here."""
    record = Record(fault)
    with pytest.raises(RuntimeError, match=f"^{said}$"):
        await record.lifespan.open()
    offer = await record.lifespan.open()
    await record.lifespan.close()
    assert offer.lifespan == 1


async def test_who_stops_waiting_does_not_stop_it():
    """B3: the first client may go while it opens; the others wait on."""
    record = Record()
    first, second = asyncio.create_task(record.lifespan.open()), asyncio.create_task(record.lifespan.open())
    await asyncio.sleep(0)
    first.cancel()
    offer = await second
    await record.lifespan.close()
    assert (first.cancelled(), offer.lifespan, len(record.events)) == (True, 1, 3)


async def test_what_it_raises_at_its_end_is_raised_by_who_closes():
    """B3: the ASGI server is told of it; the next to come opens it anew."""
    fault = OSError("not flushed")
    record = Record(at_end=fault)
    await record.lifespan.open()
    with pytest.raises(OSError, match=r"^not flushed$") as caught:
        await record.lifespan.close()
    record.at_end = None
    offer = await record.lifespan.open()
    await record.lifespan.close()
    assert (caught.value, offer.lifespan) == (fault, 2)


async def test_who_comes_while_it_closes_has_a_new_one():
    """B3: nobody is given what is being torn down."""
    record = Record()
    await record.lifespan.open()
    record.may_close.clear()
    closing = asyncio.create_task(record.lifespan.close())
    async with asyncio.timeout(20):
        while "closing 1" not in record.events:
            await asyncio.sleep(0)
    offer = await record.lifespan.open()
    record.may_close.set()
    await closing
    await record.lifespan.close()
    assert offer.lifespan == 2
    assert record.events == [
        "open 1 for nobody",
        "closing 1",
        "open 2 for nobody",
        "closed 1",
        "closing 2",
        "closed 2",
    ]


async def test_closing_what_was_never_opened_does_nothing():
    """ASGI, lifespan: a shutdown may come without a startup."""
    record = Record()
    await record.lifespan.close()
    assert record.events == []


def test_the_end_of_an_event_loop_closes_it_and_the_next_loop_has_a_new_one():
    """Issue: an application that is mounted in another gets no lifespan events."""
    record = Record()

    async def come() -> int:
        offer = await record.lifespan.open()
        return offer.lifespan

    assert [asyncio.run(come()) for _ in range(2)] == [1, 2]
    assert [event for event in record.events if event.startswith("closed")] == ["closed 1", "closed 2"]
