"""Whatever a server answers, a message fails at once with a clear error, or is answered; nothing is left open."""

import asyncio
import contextlib
import gzip
import zlib

import pytest

from tests.transports.hearing import Heard
from tests.transports.http_client.raw_server import RawServer, response, saying, stream_head, until_left
from twofold.errors import HttpStatusError, NotSent, ProtocolError, TransportError
from twofold.transports.http_client.link import HttpLink

NEWEST = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"}
MESSAGE = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
RESULT = b'{"jsonrpc":"2.0","id":1,"result":{}}'


@contextlib.asynccontextmanager
async def opened(server: RawServer, **options):
    link, heard = HttpLink(server.url, **options), Heard()
    await link.open(heard)
    try:
        yield link, heard
    finally:
        await link.close()


async def send(link: HttpLink, **headers: str) -> None:
    await link.send(MESSAGE, request_id=1, headers=NEWEST | headers)


async def fail(answer: bytes, **options) -> tuple[BaseException, str]:
    """Send one message to who answers so; give the error, and its text without the URL."""
    async with RawServer(saying(answer)) as server, opened(server, **options) as (link, heard):
        with pytest.raises((TransportError, ProtocolError)) as caught:
            await send(link)
        assert heard.raw == []
        return caught.value, str(caught.value).replace(server.url, "URL")


def chunked(*parts: bytes, content_type: str = "application/json") -> bytes:
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    return head + b"".join(parts)


NO_TYPE = "expected application/json or text/event-stream; is this URL the MCP endpoint?"
NO_ANSWERS = [
    (
        response("200 OK", b"<html>Log in\x1b[0m</html>", content_type="text/html; charset=utf-8"),
        f"the server answered as 'text/html' ('<html>Log in\\x1b[0m</html>'), {NO_TYPE}",
    ),
    (response("200 OK", b"x", content_type=""), f"the server answered as '' ('x'), {NO_TYPE}"),
    (
        response("200 OK", b""),
        "the server answered a request with 200 and nothing else; is this URL the MCP endpoint?",
    ),
    (
        response("202 Accepted", b"", content_type=""),
        "the server answered a request with 202 and nothing else; is this URL the MCP endpoint?",
    ),
    (stream_head(), "the event stream ended before the answer"),
    (stream_head() + b'data: {"id":1,"res', "the event stream ended before the answer"),
    (
        chunked(b"5\r\n:x\n\n\n\r\n", b"40\r\ndata:", content_type="text/event-stream"),
        "the event stream broke (RemoteProtocolError) before the answer",
    ),
    (
        response("200 OK", b"x" * 2_000_000, content_type="a/b"),
        f"the server answered as 'a/b' ('{'x' * 78}…), {NO_TYPE}",
    ),
]


@pytest.mark.parametrize(("answer", "told"), NO_ANSWERS, ids=range(len(NO_ANSWERS)))
async def test_an_answer_that_is_none_fails_the_message_at_once(answer, told):
    """Truncated or hostile answers fail the call at once with a clear error; it may have been carried out."""
    error, text = await fail(answer)
    assert (type(error), text) == (TransportError, f"URL: {told}")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"", "RemoteProtocolError"),
        (b"\x15\x03\x01 no HTTP at all\r\n\r\n", "RemoteProtocolError"),
        (b"HTTP/1.1 200 OK\r\n" + b"x: " + b"y" * 200_000 + b"\r\n\r\n", "RemoteProtocolError"),
        (chunked(b"10\r\n{"), "RemoteProtocolError"),
        (chunked(b"zz\r\n{}\r\n0\r\n\r\n"), "RemoteProtocolError"),
        (response("200 OK", b"no gzip", content_encoding="gzip"), "DecodingError"),
    ],
    ids=range(6),
)
async def test_an_answer_that_is_no_http_fails_the_message_at_once(answer, kind):
    """A failure after the request was written: it may have been carried out."""
    error, text = await fail(answer)
    assert type(error) is TransportError
    assert text.startswith(f"URL: the connection broke before there was an answer ({kind}")


async def test_a_body_without_an_end_is_bounded():
    """A server cannot take all memory: more than the limit is not read."""

    async def pour(_, writer):
        writer.write(chunked())
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(b"400\r\n" + b"x" * 1024 + b"\r\n")
                await writer.drain()

    async with RawServer(pour) as server, opened(server, max_answer_bytes=100_000) as (link, heard):
        with pytest.raises(TransportError, match="more than 100000 bytes, which is the limit here") as caught:
            await send(link)
        assert type(caught.value) is TransportError
        await asyncio.wait_for(server.gone.wait(), 20)
    assert heard.raw == []


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream"])
async def test_a_body_that_inflates_is_bounded_by_what_it_becomes(layers, content_type):
    """A gzip bomb: what counts is the size once decompressed."""
    compressor = zlib.compressobj(9, wbits=31)
    bomb = b"".join(compressor.compress(b"x" * 1_000_000) for _ in range(200)) + compressor.flush()
    for _ in range(layers - 1):
        bomb = gzip.compress(bomb)
    encoding = ", ".join(["gzip"] * layers)
    answer = response("200 OK", bomb, content_type=content_type, content_encoding=encoding)
    _, text = await fail(answer, max_answer_bytes=3_000_000)
    assert "more than 3000000 bytes, which is the limit here" in text


async def test_an_event_that_is_too_large_fails_the_message():
    event = b"data: " + b"x" * 200_000 + b"\n\n"
    _, text = await fail(stream_head() + event, max_answer_bytes=100_000)
    assert text == (
        "event stream: a line of more than 100000 bytes, which is the limit here; the peer must send less at once"
    )


async def test_what_a_charset_says_changes_nothing():
    """JSON is UTF-8, RFC 8259: the bytes are handed on as they are, and judged by who reads them."""
    answers = [
        response("200 OK", RESULT, content_type='application/json; charset="utf-16"'),
        response("200 OK", b'{"id":1,"result":"\xe9"}', content_type="APPLICATION/JSON;charset=latin1"),
    ]
    async with RawServer(saying(*answers)) as server, opened(server) as (link, heard):
        await send(link)
        await send(link)
    assert heard.raw == [RESULT, b'{"id":1,"result":"\xe9"}']


async def test_a_compressed_answer_is_read():
    answer = response("200 OK", gzip.compress(RESULT), content_encoding="gzip")
    async with RawServer(saying(answer)) as server, opened(server) as (link, heard):
        await send(link)
    assert heard.raw == [RESULT]


async def test_a_message_of_another_id_is_handed_on_and_answers_nothing():
    """What is not the answer is not taken for it: the stream ends without one."""
    others = [b'{"jsonrpc":"2.0","id":2,"result":{}}', b'{"jsonrpc":"2.0","id":"1","result":{}}', b"no JSON", b"[]"]
    asked = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    events = b"".join(b"data: " + each + b"\n\n" for each in (*others, asked)) + b"event: ping\ndata: {}\n\nid: 7\n\n"
    async with RawServer(saying(stream_head() + events)) as server, opened(server) as (link, heard):
        with pytest.raises(TransportError, match="the event stream ended before the answer"):
            await send(link)
    assert heard.raw == [*others, asked]


async def test_an_answer_in_a_batch_is_one():
    """2025-03-26 has batches."""
    batch = b'[{"jsonrpc":"2.0","method":"x"},' + RESULT + b"]"
    async with (
        RawServer(saying(stream_head() + b"data: " + batch + b"\n\n")) as server,
        opened(server) as (link, heard),
    ):
        await send(link)
    assert heard.raw == [batch]


async def test_a_stream_that_goes_on_after_the_answer_is_left():
    """The final response should terminate the stream; where it does not, nobody waits for long."""

    async def go_on(_, writer):
        writer.write(stream_head() + b"data: " + RESULT + b"\n\n")
        await until_left(writer)

    async with RawServer(go_on) as server, opened(server) as (link, heard):
        await send(link)
        await asyncio.wait_for(server.gone.wait(), 20)
    assert heard.raw == [RESULT]


# Statuses.


REFUSALS = [
    (
        response("500 Internal Server Error", b"<html>\n" + b"x" * 600, content_type="text/html"),
        f"500 Internal Server Error ('<html>\\n{'x' * 70}…)",
    ),
    (
        response("401 Unauthorized", b"", www_authenticate='Bearer realm="x"'),
        "401 Unauthorized; it wants to know who asks: give `auth`, or an Authorization header",
    ),
    (
        response("404 Not Found", b"nothing here", content_type="text/plain"),
        "404 Not Found ('nothing here'); is the path in the URL the one of the MCP endpoint?",
    ),
    (
        response("302 Found", b"", location="https://other.example/in?token=s3cret#x"),
        "302 Found; it leads to 'https://other.example/in': if you trust that, use it as the URL",
    ),
    (
        response("307 Temporary Redirect", b"", location="http://user:s3cret@other.example:1/"),
        "307 Temporary Redirect; it leads to 'http://other.example:1/': if you trust that, use it as the URL",
    ),
    (
        response("308 Permanent Redirect", b"", location="http://h:port/"),
        "308 Permanent Redirect; it leads to nowhere: if you trust that, use it as the URL",
    ),
    (
        response("503 Service Unavailable", b'{"error": {"code": "no"}}'),
        '503 Service Unavailable (\'{"error": {"code": "no"}}\')',
    ),
    (response("500 Internal Server Error", RESULT), f"500 Internal Server Error ({RESULT.decode()!r})"),
]


@pytest.mark.parametrize(("answer", "told"), REFUSALS, ids=range(len(REFUSALS)))
async def test_a_status_that_refuses_is_told_with_what_was_said(answer, told):
    """HttpStatusError: status, the start of the text, challenge; nothing secret in its message."""
    error, text = await fail(answer)
    assert text == f"URL: the server answered {told}"
    assert type(error) is HttpStatusError
    body = answer.partition(b"\r\n\r\n")[2].decode()[:500]
    assert (error.status, error.body) == (int(answer[9:12]), body)
    assert error.challenge == ('Bearer realm="x"' if error.status == 401 else None)


async def test_an_error_about_the_request_is_its_answer():
    """2026-07-28: errors of the protocol come with statuses of their own, and are messages all the same."""
    error = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no such method"}}'
    async with RawServer(saying(response("404 Not Found", error))) as server, opened(server) as (link, heard):
        await send(link)
    assert heard.raw == [error]


@pytest.mark.parametrize("request_id", ["null", '"server-error"', "2"])
async def test_an_error_about_no_request_of_ours_is_raised(request_id):
    """An error that has no id, or one that servers make up, would never reach who waits."""
    body = f'{{"jsonrpc":"2.0","id":{request_id},"error":{{"code":-32020,"message":"mismatch","data":[1]}}}}'.encode()
    error, _ = await fail(response("400 Bad Request", body))
    assert (type(error), error.code, error.message, error.data) == (ProtocolError, -32020, "mismatch", [1])


async def test_a_challenge_is_not_lost_behind_an_error():
    """RFC 9728: where to get a token stands in the challenge."""
    body = b'{"jsonrpc":"2.0","error":{"code":-32600,"message":"no token"}}'
    error, _ = await fail(response("401 Unauthorized", body, www_authenticate='Bearer resource_metadata="x"'))
    assert (error.status, error.body, error.challenge) == (401, body.decode(), 'Bearer resource_metadata="x"')


async def test_a_refused_notification_is_told():
    """If the server cannot accept it, it must return an error status."""
    async with RawServer(saying(response("400 Bad Request", b"no", content_type="text/plain"))) as server:
        async with opened(server) as (link, _):
            with pytest.raises(HttpStatusError, match="400 Bad Request .'no'."):
                await link.send(b"{}", request_id=None, headers={})


@pytest.mark.parametrize(
    "answer",
    [
        response("202 Accepted", b"", content_type=""),
        response("204 No Content", b"", content_type=""),
        response("200 OK", b"null"),
        response("200 OK", RESULT),
        stream_head(),
    ],
    ids=range(5),
)
async def test_an_accepted_notification_is_over(answer):
    """202 with no body is right; what else a success says about a notification, nobody waits for."""
    async with RawServer(saying(answer)) as server, opened(server) as (link, heard):
        await link.send(b"{}", request_id=None, headers={})
    assert heard.raw == []


async def test_redirections_within_the_origin_are_followed_and_remembered():
    """Frameworks redirect `/mcp` to `/mcp/`; a 307 or 308 keeps method and body."""

    async def move(request, writer):
        if request.target == "/mcp":
            writer.write(response("307 Temporary Redirect", location="/mcp/?a=b"))
        else:
            writer.write(response("200 OK", RESULT))

    async with RawServer(move) as server, opened(server, headers={"X-Key": "k"}) as (link, heard):
        await send(link)
        await send(link)
        assert link.name == server.url
    assert [request.target for request in server.requests] == ["/mcp", "/mcp/?a=b", "/mcp/?a=b"]
    assert {(request.method, request.body, request.headers["x-key"]) for request in server.requests} == {
        ("POST", MESSAGE, "k")
    }
    assert heard.raw == [RESULT, RESULT]


async def test_redirections_in_a_circle_end():
    moved = response("307 Temporary Redirect", b"", location="/mcp")
    async with RawServer(saying(moved)) as server, opened(server) as (link, _):
        with pytest.raises(HttpStatusError, match="307 Temporary Redirect; it leads to"):
            await send(link)
    assert len(server.requests) == 4


# Nothing is left.


async def test_cancelling_closes_the_stream_of_the_request():
    """2026-07-28: closing the response stream is the cancellation."""

    async def wait(_, writer):
        writer.write(stream_head() + b'data: {"jsonrpc":"2.0","method":"notifications/progress"}\n\n')
        await until_left(writer)

    async with RawServer(wait) as server, opened(server) as (link, heard):
        sending = asyncio.create_task(send(link))
        await heard.until(lambda heard: heard.raw)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        await asyncio.wait_for(server.gone.wait(), 20)


async def test_closing_ends_what_is_on_its_way():
    """Closing while sends run: each ends with an error that says so; no task and no socket stays."""
    before = asyncio.all_tasks()

    async def wait(_, writer):
        writer.write(stream_head() + b'data: {"jsonrpc":"2.0","method":"x"}\n\n')
        await until_left(writer)

    async with RawServer(wait) as server:
        async with opened(server) as (link, heard):
            sending = [asyncio.create_task(send(link)) for _ in range(3)]
            await heard.until(lambda heard: len(heard.raw) == 3)
        for task in sending:
            with pytest.raises(TransportError, match="the client was closed before there was an answer"):
                await task
        with pytest.raises(NotSent, match="not open"):
            await send(link)
        await asyncio.wait_for(server.gone.wait(), 20)
    assert asyncio.all_tasks() == before
