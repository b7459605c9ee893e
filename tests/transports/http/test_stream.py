"""One event stream: nothing is lost to who waits, what nobody takes is bounded, and each place can be resumed at."""

import asyncio

import pytest

from tests.http_peer import Response
from twofold import Limits
from twofold.protocol.eventstream import KEEP_ALIVE
from twofold.transports.http.stream import EventStream

NAMES = [pytest.param(None, id="nameless"), pytest.param("7", id="named")]


def start_reading(stream: EventStream, *, after: int | None = None, takes: bool = True) -> Response:
    """Have a client read a stream; one that does not take anything does so once it `may_send`."""
    response = Response()
    if not takes:
        response.may_send.clear()
    response.task = asyncio.create_task(stream.send_to(response.send, after=after))
    return response


async def finish_reading(stream: EventStream, *, after: int | None = None) -> Response:
    """Read a stream until the response is over."""
    return await start_reading(stream, after=after).whole()


async def let_others_run(turns: int = 20) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


def texts(response: Response) -> list[bytes]:
    return [event.data for event in response.events]


def places(response: Response) -> list[str | None]:
    return [event.id for event in response.events]


def kilobytes(count: int) -> list[bytes]:
    return [b"%01000d" % number for number in range(count)]


async def write_and_wait(stream: EventStream, messages: list[bytes]) -> None:
    """Write as a tool does that awaits each report, and does not wait for anything else."""
    for message in messages:
        stream.write(message)
        await stream.drain()
    stream.end()


@pytest.mark.parametrize("name", NAMES)
async def test_a_writer_that_waits_for_room_loses_nothing(name):
    """B4, decision 13: thirty megabytes, more than is kept or may wait, arrive whole and in order."""
    messages = kilobytes(30_000)
    stream = EventStream(Limits(), name)
    response = start_reading(stream)
    async with asyncio.timeout(30):
        await write_and_wait(stream, messages)
    await response.whole()
    assert texts(response) == messages
    assert places(response) == [None if name is None else f"{name}-{place}" for place in range(1, 30_001)]


@pytest.mark.parametrize("name", NAMES)
async def test_a_reader_that_comes_late_loses_nothing(name):
    """B4: a writer that waits is held up until the client, who is awaited, reads; it does not run into a bound."""
    messages = kilobytes(5_000)
    stream = EventStream(Limits(kept_bytes=1000, unsent_bytes=1_000_000), name)
    writing = asyncio.create_task(write_and_wait(stream, messages))
    await let_others_run(100)
    was_held_up = not writing.done()
    response = await finish_reading(stream)
    await writing
    assert (was_held_up, texts(response)) == (True, messages)


async def test_what_an_awaited_reader_has_not_taken_is_kept_beyond_the_bound():
    """B4: `kept_bytes` is for clients that come back; one that is about to come gets everything."""
    messages = kilobytes(50)
    stream = EventStream(Limits(kept_bytes=1000), "7", primes=True)
    for message in messages:
        stream.write(message)
    stream.end()
    assert texts(await finish_reading(stream)) == [b"", *messages]


@pytest.mark.parametrize("sizes", [[100] * 200, [2000] * 3, [100, 5000]])
async def test_a_stream_nobody_awaits_drops_the_oldest_and_never_the_newest(sizes):
    """B3, decision 13: bounded by `kept_bytes`, by more only where one message alone has more."""
    messages = [b"%0*d" % (size, number) for number, size in enumerate(sizes)]
    stream = EventStream(Limits(kept_bytes=1000), "7", is_awaited=False)
    kept_bytes = []
    for message in messages:
        stream.write(message)
        kept_bytes.append(stream.kept_bytes)
    stream.end()
    kept = texts(await finish_reading(stream))
    assert max(kept_bytes) <= max(1000, max(sizes) + len(b"id: 7-200\ndata: \n\n"))
    assert kept == messages[-len(kept) :]
    assert len(kept) == (8 if sizes[-1] == 100 else 1)


async def test_a_large_answer_pushes_nothing_out_while_a_client_reads():
    """Decision 13: the priming event and the messages before an answer of 5 MB arrive, though 4 MiB are kept."""
    answer = b"x" * 5_000_000
    stream = EventStream(Limits(), "7", primes=True)
    response = start_reading(stream, takes=False)
    await let_others_run()
    stream.write(b"one")
    stream.write(b"two")
    stream.end(answer)
    response.may_send.set()
    await response.whole()
    assert texts(response) == [b"", b"one", b"two", answer]
    assert places(response) == ["7-1", "7-2", "7-3", "7-4"]


async def test_an_answer_larger_than_what_is_kept_can_still_be_resumed():
    """Decision 13: what is dropped is never the answer, however large, nor after how many messages."""
    answer = b"x" * 5_000_000
    stream = EventStream(Limits(), "7", is_awaited=False)
    stream.write(b"one")
    stream.end(answer)
    response = await finish_reading(stream, after=1)
    assert (texts(response), places(response)) == ([answer], ["7-2"])


async def test_too_much_unsent_is_told_for_a_stream_that_cannot_be_resumed():
    """B3: its owner gives the call up; within the bound nothing is told."""
    told = []
    stream = EventStream(Limits(unsent_bytes=2000))
    stream.on_overflow = lambda: told.append(stream.kept_bytes)
    response = start_reading(stream, takes=False)
    for message in kilobytes(3):
        stream.write(message)
    size = len(b"data: \n\n") + 1000
    assert told == [3 * size]  # two of them fit, or nearly: what is there before the third is too much
    response.task.cancel()
    await asyncio.wait({response.task})


@pytest.mark.parametrize("has_begun", [True, False])
async def test_too_much_unsent_releases_a_reader_that_can_resume(has_begun):
    """B3: the slow client gets what was written by then; the rest, nothing twice, once it comes back."""
    messages = kilobytes(10)
    stream = EventStream(Limits(unsent_bytes=2000), "7")
    response = start_reading(stream, takes=False)
    if has_begun:
        await let_others_run()
    for message in messages[:3]:
        stream.write(message)
    if not has_begun:
        response.may_send.set()
        await response.whole()
    was_read = stream.is_read
    for message in messages[3:]:
        stream.write(message)
    stream.end(b"answer")
    response.may_send.set()
    await response.whole()
    rest = await finish_reading(stream, after=len(response.events))
    assert was_read is False
    assert len(response.events) >= 3
    assert texts(response) + texts(rest) == [*messages, b"answer"]


async def test_what_is_sent_again_counts_as_unsent():
    """B3: a client that resumes from far back and then takes nothing is released as any other."""
    messages = kilobytes(3)
    stream = EventStream(Limits(unsent_bytes=2000), "7")
    first = start_reading(stream)
    for message in messages:
        stream.write(message)
        await first.until(lambda count=len(first.events): len(first.events) > count)
    response = start_reading(stream, after=0, takes=False)
    await first.whole()
    was_read = stream.is_read
    stream.write(b"more")
    is_read = stream.is_read
    response.may_send.set()
    await response.whole()
    assert (was_read, is_read, texts(response)) == (True, False, [*messages, b"more"])


async def test_an_answer_beyond_the_bound_gives_nobody_up():
    """B3: `unsent_bytes` is for who sends without end; an answer is sent, whatever its size."""
    told = []
    stream = EventStream(Limits(unsent_bytes=10))
    stream.on_overflow = lambda: told.append("overflow")
    stream.end(b"x" * 100)
    response = await finish_reading(stream)
    assert (told, texts(response)) == ([], [b"x" * 100])


async def test_a_release_before_the_reader_comes_lets_it_go_with_what_is_there():
    """2025-11-25, Streamable HTTP: the server may close a stream before its answer; the client resumes it."""
    stream = EventStream(Limits(), "7", primes=True)
    stream.write(b"one")
    stream.release()
    response = await finish_reading(stream)
    stream.write(b"two")
    stream.end(b"answer")
    rest = await finish_reading(stream, after=2)
    assert (texts(response), texts(rest)) == ([b"", b"one"], [b"two", b"answer"])


async def test_a_release_before_the_reader_comes_is_not_for_who_resumes():
    """Decision 13: whoever says after which event it goes on has been let go already, and stays."""
    stream = EventStream(Limits(), "7", primes=True)
    stream.release()
    response = start_reading(stream, after=1)
    await let_others_run()
    stream.write(b"one")
    stream.end(b"answer")
    await response.whole()
    assert texts(response) == [b"one", b"answer"]


async def test_a_release_while_it_is_read_lets_the_reader_go_after_what_was_written():
    """2025-11-25, Streamable HTTP: the connection is closed, the stream goes on."""
    stream = EventStream(Limits(), "7")
    response = start_reading(stream)
    stream.write(b"one")
    await response.until(lambda: response.events)
    stream.write(b"two")
    stream.release()
    await response.whole()
    was_read = stream.is_read
    stream.end(b"answer")
    rest = await finish_reading(stream, after=2)
    assert (was_read, texts(response), texts(rest)) == (False, [b"one", b"two"], [b"answer"])


async def test_a_release_after_the_reader_has_gone_changes_nothing():
    """Decision 13: the next to come reads on until the end, not only what is there."""
    stream = EventStream(Limits(), "7")
    response = start_reading(stream)
    stream.write(b"one")
    await response.until(lambda: response.events)
    stream.release()
    await response.whole()
    stream.release()
    rest = start_reading(stream)
    await let_others_run()
    stream.write(b"two")
    stream.end(b"answer")
    await rest.whole()
    assert texts(rest) == [b"two", b"answer"]


@pytest.mark.parametrize("after", [None, 1])
async def test_a_second_reader_takes_over(after):
    """Decision 13: a client notices a lost connection before its server does; the first gets its end, and no more."""
    stream = EventStream(Limits(), "7")
    first = start_reading(stream)
    stream.write(b"one")
    await first.until(lambda: first.events)
    second = start_reading(stream, after=after)
    await first.whole()
    stream.write(b"two")
    await second.until(lambda: second.events)
    was_read = stream.is_read
    stream.end(b"answer")
    await second.whole()
    assert (was_read, texts(first), texts(second)) == (True, [b"one"], [b"two", b"answer"])


async def test_a_reader_that_was_taken_over_while_it_stalls_does_not_end_the_next():
    """Decision 13: the lost connection ends when it will; whoever has the stream now keeps it."""
    stream = EventStream(Limits(), "7")
    first = start_reading(stream, takes=False)
    await let_others_run()
    second = start_reading(stream)
    first.task.cancel()
    await asyncio.wait({first.task})
    was_read = stream.is_read
    stream.end(b"answer")
    await second.whole()
    assert (was_read, texts(second)) == (True, [b"answer"])


@pytest.mark.parametrize("place", range(1, 7))
async def test_resuming_gives_exactly_the_rest(place):
    """2025-11-25, Resumability: what came after `Last-Event-ID` on that stream, nothing else, by the same names."""
    stream = EventStream(Limits(), "7", primes=True)
    written = [b"", b"one", b"two", b"three", b"four", b"answer"]
    for message in written[1:-1]:
        stream.write(message)
    stream.end(written[-1])
    await finish_reading(stream)
    rest = await finish_reading(stream, after=place)
    assert texts(rest) == written[place:]
    assert places(rest) == [f"7-{number}" for number in range(place + 1, 7)]


async def test_resuming_where_the_next_is_no_longer_kept_is_told_in_the_log(caplog):
    """Decision 13: the client gets what is left, the log how many are not."""
    stream = EventStream(Limits(kept_bytes=300), "7", is_awaited=False)
    for number in range(20):
        stream.write(b"%080d" % number)
    stream.end()
    rest = await finish_reading(stream, after=5)
    assert texts(rest) == [b"%080d" % number for number in (17, 18, 19)]
    assert [record.getMessage() for record in caplog.records] == [
        "stream 7 is read on, but 12 of its messages are no longer kept"
    ]


async def test_only_places_that_were_written_are_known():
    """2025-11-25, Resumability: an event id is one that the server gave."""
    stream = EventStream(Limits(), "7", primes=True)
    stream.write(b"one")
    assert [place for place in range(-1, 5) if stream.has(place)] == [1, 2]


@pytest.mark.parametrize(
    ("name", "primes", "message", "is_resumable"),
    [
        (None, False, b"one", False),
        ("7", False, None, False),
        ("7", True, None, True),
        ("7", False, b"one", True),
    ],
)
async def test_a_stream_is_resumable_once_an_event_has_a_name(name, primes, message, is_resumable):
    """2025-11-25, Resumability: a client can only resume after an event with an id."""
    stream = EventStream(Limits(), name, primes=primes)
    if message is not None:
        stream.write(message)
    assert stream.is_resumable is is_resumable


async def test_a_priming_event_says_when_to_come_back():
    """2025-11-25, Streamable HTTP: an id, no data, and `retry`."""
    stream = EventStream(Limits(retry_milliseconds=250), "7", primes=True)
    stream.end()
    (event,) = (await finish_reading(stream)).events
    assert (event.id, event.data, event.retry_milliseconds) == ("7-1", b"", 250)


async def test_a_silent_stream_is_kept_open_by_comments():
    """B1: proxies close what is silent; a comment carries nothing, and messages go on after it."""
    stream = EventStream(Limits(keep_alive_seconds=0.005))
    response = start_reading(stream)
    await response.until(lambda: response.chunks.count(KEEP_ALIVE) >= 2)
    stream.write(b"one")
    stream.end()
    await response.whole()
    assert texts(response) == [b"one"]
    assert set(response.chunks) == {KEEP_ALIVE, b"data: one\n\n", b""}


async def test_a_client_that_takes_nothing_is_an_os_error_and_can_come_back():
    """B3: after `stall_seconds` it has gone, for the stream; nothing that it was not given is lost."""
    stream = EventStream(Limits(stall_seconds=0.005), "7")
    stream.write(b"one")
    response = start_reading(stream, takes=False)
    async with asyncio.timeout(20):
        with pytest.raises(OSError, match=r"^the client took nothing for 0\.005 seconds$"):
            await response.task
    was_read = stream.is_read
    stream.end(b"answer")
    rest = await finish_reading(stream)
    assert (was_read, texts(rest)) == (False, [b"one", b"answer"])


@pytest.mark.parametrize("fails_at", ["http.response.start", "http.response.body"])
@pytest.mark.parametrize("fault", [RuntimeError("sent twice"), TimeoutError("of its own"), BrokenPipeError("gone")])
async def test_what_sending_raises_is_passed_on_as_it_is(fault, fails_at):
    """B3: only a stall of ours is told as one; the fault of whoever runs the application stays its own."""
    stream = EventStream(Limits(), "7")
    stream.write(b"one")

    async def send(event):
        if event["type"] == fails_at:
            raise fault

    with pytest.raises(type(fault)) as caught:
        await stream.send_to(send)
    assert (caught.value is fault, stream.is_read) == (True, False)


async def test_a_writer_is_not_held_up_by_a_reader_that_has_gone():
    """B3: a vanished client holds no call: it waits for room only while somebody may make some."""
    stream = EventStream(Limits(), "7")
    response = start_reading(stream, takes=False)
    await let_others_run()
    stream.write(b"x" * 300_000)
    waiting = asyncio.create_task(stream.drain())
    await let_others_run()
    was_held_up = not waiting.done()
    response.task.cancel()
    await asyncio.wait({response.task}, timeout=20)
    async with asyncio.timeout(20):
        await waiting
    assert was_held_up is True


async def test_a_writer_is_not_held_up_where_nobody_reads():
    """B4: in a session a call goes on without its client; what is too much is dropped, not waited for."""
    stream = EventStream(Limits(), "7", is_awaited=False)
    stream.write(b"x" * 300_000)
    draining = stream.drain()
    with pytest.raises(StopIteration):
        draining.send(None)


async def test_a_small_message_holds_nobody_up():
    """B4: a tool that reports now and then does not wait for its client."""
    stream = EventStream(Limits())
    stream.write(b"x" * 200_000)
    draining = stream.drain()
    with pytest.raises(StopIteration):
        draining.send(None)


async def test_the_end_is_told_once_and_closes_the_response():
    """Decision 13: a finished stream is handed to whoever keeps it."""
    told = []
    stream = EventStream(Limits(), "7")
    stream.on_end = lambda: told.append(stream.kept_bytes)
    response = start_reading(stream)
    await let_others_run()
    stream.end(b"answer")
    await response.whole()
    assert (told, texts(response), response.chunks[-1]) == ([len(response.body)], [b"answer"], b"")


async def test_a_stream_that_cannot_be_resumed_keeps_nothing_that_was_sent():
    """B3: nobody can come back for it."""
    stream = EventStream(Limits())
    response = start_reading(stream)
    stream.write(b"x" * 1000)
    await response.until(lambda: response.events)
    assert (stream.kept_bytes, stream.has_unsent) == (0, False)
    stream.end()
    await response.whole()


async def test_the_head_forbids_what_would_hold_events_back():
    """B1: `X-Accel-Buffering: no`, no caching, and what the caller adds."""
    stream = EventStream(Limits())
    stream.end()
    response = Response()
    await stream.send_to(response.send, headers=[(b"vary", b"Origin")])
    assert (response.status, response.headers) == (
        200,
        {
            "content-type": "text/event-stream",
            "cache-control": "no-cache, no-transform",
            "x-accel-buffering": "no",
            "vary": "Origin",
        },
    )


async def test_what_is_dropped_of_a_stream_nobody_reads_is_told_in_the_log(caplog):
    """Decision 13: what is dropped is the oldest, and is told in the log."""
    stream = EventStream(Limits(kept_bytes=300), "0", is_awaited=False)
    for number in range(50):
        stream.write(b"%050d" % number)
    stream.end()
    response = Response()
    response.task = asyncio.create_task(stream.send_to(response.send))
    await response.whole()
    assert len(response.events) < 50
    lost = 50 - len(response.events)
    assert f"stream 0 is read on, but {lost} of its messages are no longer kept" in caplog.text
