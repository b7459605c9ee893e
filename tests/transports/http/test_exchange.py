"""One POST and its answer: which kind it is, what a client that goes does to the work, whose fault is raised where."""

import asyncio
import logging

import pytest

from tests.http_peer import PER_REQUEST, HttpPeer, HttpSession, Response
from tests.oracle import judge_message
from twofold import Context, Limits, MCPServer
from twofold.errors import HeaderMismatch, InternalError, InvalidParams, MethodNotFound, UnsupportedProtocolVersion
from twofold.transports.exchange import Answer
from twofold.transports.http.exchange import RequestExchange, SessionExchange
from twofold.transports.http.inbound import Inbound
from twofold.transports.http.places import Places
from twofold.transports.http.request import Head
from twofold.transports.http.stream import EventStream

DONE = Answer(b'{"done":true}')
AT_ONCE = Limits(watch_after_seconds=0, resumable_after_seconds=0)
"""Whoever waits at all is watched, and has a stream."""


class Work:
    """A server's end whose work is written by the test."""

    def __init__(self, work) -> None:
        self.ended: list[str] = []
        self.started = asyncio.Event()
        self._work = work

    async def answer(self, line, exchange):
        self.started.set()
        try:
            answer = await self._work(exchange)
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        self.ended.append("done")
        return answer


async def let_others_run(turns: int = 20) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


def make_inbound(receive, send, *, is_per_request: bool) -> Inbound:
    """Make a request that has a place, as an application gets it from any ASGI server."""
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": []}
    inbound = Inbound(scope, receive, send)
    inbound.head = Head("POST", "/mcp", "/mcp", {}, is_per_request, None)
    inbound.place = Places(1, "requests are running").take()
    inbound.extra = [(b"vary", b"Origin")]
    return inbound


def serve_request(
    work: Work, *, cancels: bool = True, limits: Limits = AT_ONCE, send=None, is_stopping=lambda: False
) -> tuple[RequestExchange, Response]:
    """Have a message answered that belongs to no session."""
    response = Response()
    inbound = make_inbound(response.receive, send or response.send, is_per_request=cancels)
    exchange = RequestExchange(inbound, limits=limits, is_stopping=is_stopping)
    response.task = asyncio.create_task(exchange.serve(work, b"{}"))
    return exchange, response


class InSession:
    """A message of a session, and what its exchange asked of the session."""

    def __init__(self, *, prefers_stream: bool = False, primes: bool = False, limits: Limits = AT_ONCE) -> None:
        self.limits = limits
        self.primes = primes
        self.awaited: list[bool] = []
        self.streams: list[EventStream] = []
        self.finished = 0
        self.exchange = SessionExchange(
            {},
            None,
            limits=limits,
            admit=lambda name: None,
            open_stream=self._open_stream,
            prefers_stream=prefers_stream,
            on_finished=self._finish,
        )

    def _open_stream(self, is_awaited: bool) -> EventStream:
        stream = EventStream(self.limits, "1", primes=self.primes, is_awaited=is_awaited)
        self.awaited.append(is_awaited)
        self.streams.append(stream)
        return stream

    def _finish(self) -> None:
        self.finished += 1

    def reply(self, send=None) -> Response:
        """Have the answer sent to a client."""
        response = Response()
        replying = self.exchange.reply(make_inbound(response.receive, send or response.send, is_per_request=False))
        response.task = asyncio.create_task(replying)
        return response

    async def resume(self, after: int | None = None) -> Response:
        """Read its stream once more."""
        (stream,) = self.streams
        response = Response()
        response.task = asyncio.create_task(stream.send_to(response.send, after=after))
        return await response.whole()


def texts(response: Response) -> list[bytes]:
    return [event.data for event in response.events]


# Requests of 2026-07-28, and of servers without sessions.


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (DONE, 200),
        (Answer(b"{}", MethodNotFound("?")), 404),
        (Answer(b"{}", HeaderMismatch("?")), 400),
        (Answer(b"{}", InternalError("?")), 200),
    ],
)
@pytest.mark.parametrize("waits", [False, True])
async def test_an_answer_before_which_nothing_was_sent_is_one_json_object(waits, answer, status):
    """B1, decision 12: with the status that 2026-07-28 gives the error, whether the work had to wait or not."""

    async def work(exchange):
        await let_others_run(3 if waits else 0)
        return answer

    _, response = serve_request(Work(work))
    await response.whole()
    assert (response.status, response.body) == (status, answer.body)
    assert response.headers == {
        "content-type": "application/json",
        "content-length": str(len(answer.body)),
        "vary": "Origin",
    }


@pytest.mark.parametrize("answer", [DONE, Answer(b"{}", MethodNotFound("?"))])
async def test_an_answer_before_which_something_was_sent_ends_a_stream(answer):
    """B1, B4: a stream from the first message on; its status is 200, whatever the answer then is."""

    async def work(exchange):
        exchange.write(b"one")
        await exchange.drain()
        exchange.write(b"two")
        return answer

    _, response = serve_request(Work(work))
    await response.whole()
    assert (response.status, texts(response)) == (200, [b"one", b"two", answer.body])
    assert (response.headers["content-type"], response.headers["vary"]) == ("text/event-stream", "Origin")


async def test_what_owes_no_answer_is_202():
    """2026-07-28, Streamable HTTP: a notification is accepted, without a body."""

    async def work(exchange):
        return None

    _, response = serve_request(Work(work))
    await response.whole()
    assert (response.status, response.body, response.headers["content-length"]) == (202, b"", "0")


async def test_a_quiet_request_becomes_a_stream_for_its_comments():
    """B4: before a proxy closes the connection, which would cancel the work."""
    go_on = asyncio.Event()

    async def work(exchange):
        await go_on.wait()
        return DONE

    _, response = serve_request(Work(work), limits=Limits(watch_after_seconds=0, keep_alive_seconds=0.005))
    await response.until(lambda: response.chunks)
    go_on.set()
    await response.whole()
    assert texts(response) == [DONE.body]


@pytest.mark.parametrize("streams", [False, True])
async def test_a_client_that_goes_takes_its_request_back(streams):
    """B4: closing the connection cancels; nothing more is sent, nobody is told of an error."""

    async def wait(exchange):
        if streams:
            exchange.write(b"one")
        await asyncio.Event().wait()

    work = Work(wait)
    exchange, response = serve_request(work)
    await asyncio.wait_for(work.started.wait(), 20)
    if streams:
        await response.until(lambda: response.events)
    response.disconnect()
    async with asyncio.timeout(20):
        answer = await response.task
    exchange.write(b"late")
    await let_others_run()
    assert (answer, work.ended, exchange.is_taken_back) == (None, ["cancelled"], True)
    assert response.task.cancelling() == 0  # middleware goes on after it, in the same task
    assert (response.status, response.is_complete) == (200 if streams else 0, False)
    assert texts(response) == ([b"one"] if streams else [])


async def test_a_client_without_a_session_that_goes_does_not_take_its_request_back():
    """B4: in the handshake revisions only a notification does."""
    go_on = asyncio.Event()

    async def wait(exchange):
        await go_on.wait()
        return DONE

    work = Work(wait)
    exchange, response = serve_request(work, cancels=False)
    await asyncio.wait_for(work.started.wait(), 20)
    response.disconnect()
    await let_others_run()
    go_on.set()
    await response.whole()
    assert (work.ended, exchange.is_taken_back) == (["done"], False)


async def test_work_that_does_not_heed_its_cancellation_is_not_sent():
    """B4: whoever has gone gets nothing, also where the work comes to an end all the same."""

    async def stubborn(exchange):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return DONE

    work = Work(stubborn)
    _, response = serve_request(work)
    await asyncio.wait_for(work.started.wait(), 20)
    response.disconnect()
    async with asyncio.timeout(20):
        await response.task
    assert (work.ended, response.status) == (["done"], 0)


async def test_a_cancellation_by_the_asgi_server_is_passed_on():
    """B3: a task is its maker's to end; only a cancellation of our own is taken back."""

    async def wait(exchange):
        await asyncio.Event().wait()

    work = Work(wait)
    _, response = serve_request(work)
    await asyncio.wait_for(work.started.wait(), 20)
    response.task.cancel()
    await asyncio.wait({response.task}, timeout=20)
    assert (response.task.cancelled(), work.ended, response.status) == (True, ["cancelled"], 0)


async def test_a_request_is_told_whether_the_application_ends():
    """B3: what is cancelled at the end is not taken back: its client still waits, and can be told."""
    is_stopping = []

    async def look(exchange):
        before = (exchange.is_ending, exchange.is_taken_back)
        is_stopping.append(True)
        return Answer(repr([before, (exchange.is_ending, exchange.is_taken_back)]).encode())

    _, response = serve_request(Work(look), is_stopping=lambda: bool(is_stopping))
    await response.whole()
    assert response.body == b"[(False, False), (True, False)]"


async def test_a_request_that_nobody_could_resume_keeps_its_stream():
    """Decision 12: `close_sse_stream`, `finish` and `cancel` are for sessions; here the connection is all there is."""

    async def work(exchange):
        exchange.write(b"one")
        exchange.close_stream()
        exchange.finish(Answer(b"never"))
        exchange.cancel()
        exchange.write(b"two")
        return DONE

    _, response = serve_request(Work(work))
    await response.whole()
    assert texts(response) == [b"one", b"two", DONE.body]


async def test_a_client_that_takes_nothing_is_given_up_with_its_work():
    """B3: a stalled client is no fault of anybody's: nothing is raised."""

    async def flood(exchange):
        while True:
            exchange.write(b"x" * 1000)
            await exchange.drain()

    work = Work(flood)
    _, response = serve_request(work, limits=Limits(stall_seconds=0.01, watch_after_seconds=0))
    response.may_send.clear()
    async with asyncio.timeout(20):
        answer = await response.task
    assert (answer, work.ended, response.status) == (None, ["cancelled"], 0)


async def test_a_fault_of_sending_cancels_the_work_of_a_stream():
    """B3: nobody is left to send to."""

    async def flood(exchange):
        while True:
            exchange.write(b"one")
            await asyncio.sleep(0)

    async def send(event):
        if event["type"] == "http.response.body":
            raise OSError("gone")

    work = Work(flood)
    _, response = serve_request(work, send=send)
    await asyncio.wait({response.task}, timeout=20)
    assert (response.task.done(), work.ended) == (True, ["cancelled"])


async def test_a_fault_of_sending_the_rest_of_a_stream_is_raised():
    """B3: what is wrong with the ASGI server is told to it."""
    fault = RuntimeError("sent after the end")

    async def work(exchange):
        exchange.write(b"one")
        return DONE

    async def send(event):
        if event["type"] == "http.response.body":
            raise fault

    _, response = serve_request(Work(work), send=send)
    await asyncio.wait({response.task}, timeout=20)
    assert response.task.exception() is fault


# Messages of sessions.


@pytest.mark.parametrize("is_early", [True, False])
@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (DONE, 200),
        (Answer(b"{}", MethodNotFound("?")), 200),
        (Answer(b"{}", InvalidParams("?")), 200),
        (Answer(b"{}", HeaderMismatch("?")), 400),
        (Answer(b"{}", UnsupportedProtocolVersion("?", {})), 400),
        (Answer(b"{}", InvalidParams("?"), is_unreadable=True), 400),
    ],
)
async def test_an_answer_in_a_session_is_json_where_nothing_was_sent(answer, status, is_early):
    """Decision 12: never 404, which would say that the session is gone; whether it is there before it is asked for."""
    message = InSession(limits=Limits())
    if is_early:
        message.exchange.finish(answer)
    response = message.reply()
    await let_others_run()
    message.exchange.finish(answer)
    await response.whole()
    assert (response.status, response.body, message.streams) == (status, answer.body, [])
    assert response.headers == {
        "content-type": "application/json",
        "content-length": str(len(answer.body)),
        "vary": "Origin",
    }


async def test_a_message_of_a_session_that_owes_no_answer_is_202():
    """2025-11-25, Streamable HTTP: a notification is accepted, without a body."""
    message = InSession()
    message.exchange.finish(None)
    response = await message.reply().whole()
    assert (response.status, response.body, message.streams) == (202, b"", [])


async def test_what_is_sent_in_a_session_opens_a_stream():
    """B4: on the call's own stream, the answer last; a client was about to read it."""
    message = InSession()
    response = message.reply()
    message.exchange.write(b"one")
    await response.until(lambda: response.events)
    message.exchange.write(b"two")
    message.exchange.finish(DONE)
    await response.whole()
    assert (response.status, texts(response)) == (200, [b"one", b"two", DONE.body])
    assert (message.awaited, message.finished) == ([True], 1)


@pytest.mark.parametrize(("is_unreadable", "kind"), [(False, "text/event-stream"), (True, "application/json")])
async def test_a_client_that_prefers_streams_gets_one(is_unreadable, kind):
    """Decision 12: what it named first; what is no message is answered with its status all the same."""
    message = InSession(prefers_stream=True)
    message.exchange.finish(Answer(b"{}", is_unreadable=is_unreadable))
    response = await message.reply().whole()
    assert response.headers["content-type"] == kind


async def test_a_slow_call_of_a_session_becomes_a_stream():
    """2025-11-25, Resumability: its client gets a name to come back with before the answer is there."""
    message = InSession(primes=True)
    response = message.reply()
    await response.until(lambda: response.events)
    first = list(response.events)
    message.exchange.finish(DONE)
    await response.whole()
    assert ([event.id for event in first], texts(response)) == (["1-1"], [b"", DONE.body])


@pytest.mark.parametrize("streams", [False, True])
async def test_a_second_answer_is_none(streams):
    """Decision 12: an exchange is finished once, and its place is left once."""
    message = InSession(limits=Limits())
    if streams:
        message.exchange.write(b"one")
    message.exchange.finish(DONE)
    message.exchange.finish(Answer(b"second"))
    message.exchange.finish(None)
    message.exchange.cancel()
    response = await message.reply().whole()
    assert message.finished == 1
    assert (texts(response) if streams else response.body) == ([b"one", DONE.body] if streams else DONE.body)


@pytest.mark.parametrize("streams", [False, True])
async def test_nothing_is_sent_after_the_answer(streams):
    """B4: progress stops with the answer; a late report neither opens a stream nor closes one."""
    message = InSession(limits=Limits())
    if streams:
        message.exchange.write(b"one")
    message.exchange.finish(DONE)
    message.exchange.write(b"late")
    message.exchange.close_stream()
    response = await message.reply().whole()
    assert (texts(response) if streams else response.body) == ([b"one", DONE.body] if streams else DONE.body)
    assert len(message.streams) == int(streams)


@pytest.mark.parametrize("streams", [False, True])
async def test_a_cancelled_request_of_a_session_is_a_stream_that_ends_without_an_answer(streams):
    """2025-11-25, Cancellation and Streamable HTTP: no response is sent, and a request is answered JSON or a stream."""
    message = InSession()
    if streams:
        message.exchange.write(b"one")
    message.exchange.cancel()
    response = await message.reply().whole()
    assert (response.status, response.headers["content-type"]) == (200, "text/event-stream")
    assert (texts(response), message.finished) == ([b"one"] if streams else [], 1)


@pytest.mark.parametrize(("primes", "lets_go"), [(True, True), (False, False)])
async def test_only_a_client_that_can_resume_is_let_go(primes, lets_go):
    """2025-11-25, Streamable HTTP: with no event id to come back with, the rest would be lost to it."""
    message = InSession(primes=primes)
    message.exchange.close_stream()
    response = message.reply()
    await response.until(lambda: response.status)
    await let_others_run()
    was_let_go = response.is_complete
    message.exchange.finish(DONE)
    await response.whole()
    assert (was_let_go, DONE.body in texts(response)) == (lets_go, not lets_go)
    if lets_go:
        assert texts(await message.resume(after=1)) == [DONE.body]


async def test_a_client_of_a_session_that_goes_can_come_back():
    """B4: a dropped connection cancels nothing, is no error, and loses nothing."""
    message = InSession(primes=True)
    response = message.reply()
    message.exchange.write(b"one")
    await response.until(lambda: len(response.events) == 2)
    response.disconnect()
    await asyncio.wait_for(response.task, 20)
    was_taken_back = message.exchange.is_taken_back
    message.exchange.write(b"two")
    message.exchange.finish(DONE)
    rest = await message.resume(after=2)
    assert (was_taken_back, response.is_complete, texts(rest)) == (False, False, [b"two", DONE.body])


async def test_a_stream_opened_after_its_client_has_gone_awaits_nobody():
    """B3: nothing is kept beyond its bound for who is not there."""
    message = InSession(limits=Limits())
    response = message.reply()
    await let_others_run()
    response.task.cancel()
    await asyncio.wait({response.task}, timeout=20)
    message.exchange.write(b"one")
    message.exchange.finish(DONE)
    assert message.awaited == [False]
    assert texts(await message.resume()) == [b"one", DONE.body]


async def test_a_fault_of_sending_in_a_session_is_raised_and_ends_nothing():
    """B3: what is wrong with the ASGI server is told to it; the call goes on, for who comes back."""
    fault = RuntimeError("sent after the end")

    async def send(event):
        if event["type"] == "http.response.body":
            raise fault

    message = InSession(primes=True)
    response = message.reply(send)
    message.exchange.write(b"one")
    await asyncio.wait({response.task}, timeout=20)
    raised = response.task.exception()
    message.exchange.finish(DONE)
    rest = await message.resume(after=1)
    assert (raised, texts(rest)[-1], message.finished) == (fault, DONE.body, 1)


# Whole requests, in both eras.


class Repeating:
    """Middleware that has read the body itself, and gives it again whenever it is asked."""

    def __init__(self, app) -> None:
        self.app = app
        self.asked = 0

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        event = await receive()

        async def repeat():
            self.asked += 1
            if self.asked > 1000:  # whoever asks on and on would never let the event loop go
                await asyncio.Event().wait()
            return event

        await self.app(scope, repeat, send)


async def call_in_era(http: HttpPeer, era: str, name: str) -> Response:
    """Call a tool, in a session where the era has them."""
    if era == PER_REQUEST:
        return http.send("tools/call", {"name": name}, progressToken="p")
    async with HttpSession(http, era) as session:
        return session.call(name, progressToken="p")


def answer_of(response: Response) -> dict:
    return response.messages[-1] if response.headers["content-type"] == "text/event-stream" else response.json


ERAS = [
    pytest.param(PER_REQUEST, {}, id="2026-07-28"),
    pytest.param("2025-11-25", {}, id="session"),
    pytest.param("2025-11-25", {"stateless": True}, id="stateless"),
]


@pytest.mark.parametrize(("era", "options"), ERAS)
async def test_middleware_that_gives_the_body_again_and_again_holds_nothing_up(era, options):
    """B3: whether the client stays cannot be learned there; a slow call ends all the same, and asks no second time."""
    server = MCPServer("s")
    started, go_on = asyncio.Event(), asyncio.Event()

    @server.tool()
    async def wait() -> str:
        """Wait."""
        started.set()
        await go_on.wait()
        return "done"

    async with HttpPeer(server, limits=AT_ONCE, **options) as http:
        http.app = repeating = Repeating(http.app)
        async with asyncio.timeout(20):
            response = await call_in_era(http, era, "wait")
            await started.wait()
            asked_before = repeating.asked
            await let_others_run(200)
            go_on.set()
            await response.whole()
    assert answer_of(response)["result"]["content"] == [{"type": "text", "text": "done"}]
    assert repeating.asked - asked_before <= 1


@pytest.mark.parametrize(("era", "options"), ERAS)
async def test_a_tool_that_cancels_its_own_task_is_answered(era, options, caplog):
    """B1: nobody took the request back, so that an answer is owed: -32603, with a reference to the log."""
    server = MCPServer("s")

    @server.tool()
    async def give_up() -> str:
        """Cancel the task it runs in."""
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)
        return "never"

    @server.tool()
    def add() -> int:
        """Work."""
        return 3

    async with HttpPeer(server, **options) as http:
        response = await (await call_in_era(http, era, "give_up")).whole()
        after = await (await call_in_era(http, era, "add")).whole()
    judge_message(response.json, revision=era, method="tools/call")
    error = response.json["error"]
    reference = error["message"].removeprefix("the server failed to answer (reference ").removesuffix(")")
    assert (response.status, error["code"], len(reference)) == (200, -32603, 8)
    assert f"reference {reference}" in caplog.text
    assert answer_of(after)["result"]["structuredContent"] == {"result": 3}


async def test_a_fault_of_sending_is_raised_to_the_asgi_server_by_a_session(caplog):
    """B3: whole request of a session; the call itself goes on."""
    caplog.set_level(logging.ERROR, "asyncio")
    server = MCPServer("s")
    started, go_on, ended = asyncio.Event(), asyncio.Event(), []

    @server.tool()
    async def report(ctx: Context) -> str:
        """Report and wait."""
        await ctx.report_progress(1)
        started.set()
        await go_on.wait()
        ended.append("done")
        return "done"

    async with HttpPeer(server) as http, HttpSession(http) as session:
        application = http.app

        async def break_off(scope, receive, send):
            async def send_head(event):
                if event["type"] == "http.response.body":
                    raise RuntimeError("sent after the end")
                await send(event)

            await application(scope, receive, send_head)

        http.app = break_off
        response = session.call("report", progressToken="p")
        http.app = application
        await asyncio.wait_for(started.wait(), 20)
        with pytest.raises(RuntimeError, match=r"^sent after the end$"):
            await asyncio.wait_for(response.task, 20)
        http.open_responses.remove(response)
        go_on.set()
        async with asyncio.timeout(20):
            while not ended:
                await asyncio.sleep(0)
    assert (ended, caplog.records) == (["done"], [])


async def test_a_fault_of_sending_in_the_middle_of_a_stream_is_raised_to_the_asgi_server():
    """B3: the work is cancelled, and what is wrong with the ASGI server is told to it."""
    ended = []
    response = Response()

    class Work:
        async def answer(self, line, exchange):
            try:
                while True:
                    exchange.write(b"one")
                    await asyncio.sleep(0)
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise

    async def send(event):
        if event["type"] == "http.response.body":
            raise RuntimeError("sent after the end")

    inbound = make_inbound(response.receive, send, is_per_request=True)
    exchange = RequestExchange(inbound, limits=Limits(), is_stopping=lambda: False)
    with pytest.raises(RuntimeError, match="sent after the end"):
        async with asyncio.timeout(20):
            await exchange.serve(Work(), b"{}")
    assert ended == ["cancelled"]


async def test_a_tool_that_cancels_its_own_task_and_returns_is_answered():
    """B1: nobody took the request back: an answer is owed, also where the client takes it slowly."""
    server = MCPServer("s")

    @server.tool()
    async def give_up() -> str:
        """Cancel the task it runs in, and go on."""
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return "done"

    async with HttpPeer(server) as http:
        response = http.send("tools/call", {"name": "give_up"})
        response.may_send.clear()
        for _ in range(20):
            await asyncio.sleep(0)
        response.may_send.set()
        await asyncio.wait({response.task}, timeout=20)
        http.open_responses.clear()
        assert (response.task.cancelled(), response.status) == (False, 200)
