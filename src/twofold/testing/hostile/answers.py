"""Misbehaviours that answer one request, whichever it is."""

import itertools
from collections.abc import Callable, Iterator

import msgspec

from twofold.protocol.structs import Json
from twofold.testing.hostile.steps import (
    EVER,
    Asked,
    Close,
    Complain,
    HalfClose,
    Misbehaviour,
    Play,
    Pour,
    Say,
    Step,
    Transport,
    Wait,
    notification,
    request,
)

CALL = "tools/call"
LEVELS = 100_000
FLOOD = 5_000
"""Messages of a flood that ends."""
_MEGABYTE = b"x" * 1_000_000

ANSWERS: dict[str, Misbehaviour] = {}
"""By name."""


def _on(method: str = CALL, *, only: Transport | None = None) -> Callable[[Play], Play]:
    """Put a misbehaviour into the table under its function's name; its docstring says what it is."""

    def put(play: Play) -> Play:
        name = play.__name__
        ANSWERS[name] = Misbehaviour(name, (play.__doc__ or "").strip(), method, play, only)
        return play

    return put


# --- answers that are no JSON, or none that can be read ------------------------------------------------


@_on()
def nan(asked: Asked) -> Iterator[Step]:
    """`NaN` for a value."""
    yield Say(asked.answer_with(b'{"value":NaN}'))


@_on()
def infinity(asked: Asked) -> Iterator[Step]:
    """`-Infinity` for a value."""
    yield Say(asked.answer_with(b'{"value":-Infinity}'))


@_on()
def huge_exponent(asked: Asked) -> Iterator[Step]:
    """`1e999`: JSON, but more than a float holds."""
    yield Say(asked.answer_with(b'{"value":1e999}'))


@_on()
def huge_integer(asked: Asked) -> Iterator[Step]:
    """A whole number of a million digits."""
    yield Say(asked.answer_with(b'{"value":1%b}' % (b"0" * 1_000_000)))


@_on()
def deep_arrays(asked: Asked) -> Iterator[Step]:
    """Arrays inside one another, 100,000 levels deep."""
    yield Say(asked.answer_with(b"[" * LEVELS + b"]" * LEVELS))


@_on()
def deep_objects(asked: Asked) -> Iterator[Step]:
    """Objects inside one another, 100,000 levels deep."""
    yield Say(asked.answer_with(b'{"a":' * LEVELS + b"1" + b"}" * LEVELS))


@_on()
def unclosed_arrays(_: Asked) -> Iterator[Step]:
    """A million arrays that are opened and never closed."""
    yield Say(b"[" * 1_000_000)


@_on()
def broken_json(asked: Asked) -> Iterator[Step]:
    """Half of an answer, framed as if it were whole."""
    whole = asked.answer()
    yield Say(whole[: len(whole) // 2])


@_on()
def invalid_utf8(asked: Asked) -> Iterator[Step]:
    """Bytes in a text that are not UTF-8."""
    yield Say(asked.answer_with(b'{"value":"\xff\xfe\xc0\x80"}'))


@_on()
def lone_surrogate(asked: Asked) -> Iterator[Step]:
    r"""Half of a surrogate pair, escaped: `"\ud800"`."""
    yield Say(asked.answer_with(rb'{"value":"\ud800"}'))


@_on()
def bom(asked: Asked) -> Iterator[Step]:
    """A byte order mark before the answer."""
    yield Say(b"\xef\xbb\xbf" + asked.answer())


@_on()
def utf16(asked: Asked) -> Iterator[Step]:
    """The answer in UTF-16."""
    yield Say(asked.answer().decode().encode("utf-16-le").replace(b"\n", b" "))


# --- JSON that is no answer to what was asked ---------------------------------------------------------


@_on()
def wrong_id(asked: Asked) -> Iterator[Step]:
    """An answer to a request that nobody made, and none to the one that was."""
    yield Say(asked.answer(id=987_654_321))


@_on()
def text_id(asked: Asked) -> Iterator[Step]:
    """The id as text, where a number was sent."""
    yield Say(asked.answer(id=str(asked.id)))


@_on()
def fractional_id(asked: Asked) -> Iterator[Step]:
    """The id as `1.0`, where `1` was sent."""
    yield Say(asked.answer().replace(b'"id":%b' % msgspec.json.encode(asked.id), b'"id":%b.0' % _number(asked)))


def _number(asked: Asked) -> bytes:
    return b"%d" % asked.id if isinstance(asked.id, int) else b"1"


@_on()
def no_id(_: Asked) -> Iterator[Step]:
    """An error without an id: nobody can tell what it is about."""
    yield Say(msgspec.json.encode({"jsonrpc": "2.0", "error": {"code": -32603, "message": "something is wrong"}}))


@_on()
def old_id(asked: Asked) -> Iterator[Step]:
    """The answer under the id of the request before, which has its answer."""
    yield Say(asked.answer(id=asked.last_id))


@_on()
def two_ids(asked: Asked) -> Iterator[Step]:
    """Two members `id` in one message, the right one last."""
    yield Say(b'{"jsonrpc":"2.0","id":987654321,' + asked.answer().removeprefix(b'{"jsonrpc":"2.0",'))


@_on()
def two_answers(asked: Asked) -> Iterator[Step]:
    """Two answers to one request; the second is an error."""
    yield Say(asked.answer())
    yield Say(asked.answer(result=msgspec.UNSET, error={"code": -32603, "message": "the second answer"}))


@_on()
def early_answers(asked: Asked) -> Iterator[Step]:
    """Answers to the next five requests before they are made, then the one to this."""
    first = asked.id if isinstance(asked.id, int) else 0
    for ahead in range(1, 6):
        yield Say(asked.answer(id=first + ahead, result={"content": [], "structuredContent": {"forged": True}}))
    yield Say(asked.answer())


@_on()
def batch(asked: Asked) -> Iterator[Step]:
    """The answer in a batch, behind a notification."""
    yield Say(b"[%b,%b]" % (notification("notifications/unheard_of", {}), asked.answer()))


@_on()
def empty_batch(_: Asked) -> Iterator[Step]:
    """A batch of nothing."""
    yield Say(b"[]")


@_on()
def nested_batch(asked: Asked) -> Iterator[Step]:
    """A batch in a batch, with the answer inside."""
    yield Say(b"[[%b]]" % asked.answer())


@_on()
def wrong_version(asked: Asked) -> Iterator[Step]:
    """JSON-RPC 1.0."""
    yield Say(asked.answer(jsonrpc="1.0"))


@_on()
def no_version(asked: Asked) -> Iterator[Step]:
    """No `jsonrpc` at all."""
    yield Say(asked.answer(jsonrpc=msgspec.UNSET))


@_on()
def result_and_error(asked: Asked) -> Iterator[Step]:
    """Both a result and an error."""
    yield Say(asked.answer(error={"code": -32603, "message": "and it failed"}))


@_on()
def no_result(asked: Asked) -> Iterator[Step]:
    """Neither a result nor an error."""
    yield Say(asked.answer(result=msgspec.UNSET))


@_on()
def list_result(asked: Asked) -> Iterator[Step]:
    """A list for a result."""
    yield Say(asked.answer(result=[asked.result]))


@_on()
def null_result(asked: Asked) -> Iterator[Step]:
    """`null` for a result."""
    yield Say(asked.answer(result=None))


@_on()
def text_error(asked: Asked) -> Iterator[Step]:
    """An error that is a text."""
    yield Say(asked.answer(result=msgspec.UNSET, error="it failed"))


@_on()
def huge_error(asked: Asked) -> Iterator[Step]:
    """An error whose message is a megabyte of what a terminal would obey."""
    yield Say(asked.answer(result=msgspec.UNSET, error={"code": -32603, "message": "\x1b[2J" * 250_000}))


# --- too much, or without an end ----------------------------------------------------------------------


@_on()
def endless_line(asked: Asked) -> Iterator[Step]:
    """An answer that goes on and on, without an end of line."""
    yield Pour(b'{"jsonrpc":"2.0","id":%b,"result":{"structuredContent":{"value":"' % msgspec.json.encode(asked.id))
    while True:
        yield Pour(_MEGABYTE)


@_on()
def endless_blanks(_: Asked) -> Iterator[Step]:
    """Blanks without an end, where a message should begin."""
    while True:
        yield Pour(b" " * 1_000_000)


@_on()
def endless_lines(_: Asked) -> Iterator[Step]:
    """Empty lines without an end."""
    while True:
        yield Pour(b"\n" * 100_000)


@_on()
def slow_drip(asked: Asked) -> Iterator[Step]:
    """The answer byte by byte, with the last ones never to come."""
    for byte in asked.answer()[:-2]:
        yield Pour(bytes([byte]))
        yield Wait(0.02)
    yield EVER


@_on()
def flood_of_notifications(asked: Asked) -> Iterator[Step]:
    """5,000 notifications: that the tools have changed, log messages, unknown and malformed ones; then the answer."""
    kinds = [
        notification("notifications/tools/list_changed", {}),
        notification("notifications/message", {"level": "error", "data": "look here"}),
        notification("notifications/unheard_of", {}),
        notification("notifications/progress", {"progressToken": [], "progress": "much"}),
    ]
    yield from (Say(kinds[count % len(kinds)]) for count in range(FLOOD))
    yield Say(asked.answer())


@_on()
def flood_of_requests(asked: Asked) -> Iterator[Step]:
    """5,000 requests of the server's own: pings, and for a model's words; then the answer."""
    for count in range(FLOOD):
        yield Say(request(("ping", "sampling/createMessage")[count % 2], count))
    yield Say(asked.answer())


@_on()
def own_id_reused(asked: Asked) -> Iterator[Step]:
    """A request of the server's own under the very id that waits for its answer; then the answer."""
    yield Say(request("ping", asked.id))
    yield Say(asked.answer())


@_on()
def huge_progress(asked: Asked) -> Iterator[Step]:
    """Progress backwards, of texts, of a megabyte, and 5,000 times forwards; then the answer."""
    token = asked.progress_token
    odd: list[Json] = [1e308, -1, "half", None, [1]]
    for each in odd:
        yield Say(notification("notifications/progress", {"progressToken": token, "progress": each}))
    text = _MEGABYTE.decode()
    yield Say(notification("notifications/progress", {"progressToken": token, "progress": 1, "message": text}))
    for count in range(FLOOD):
        yield Say(notification("notifications/progress", {"progressToken": token, "progress": count}))
    yield Say(asked.answer())


@_on()
def endless_notifications(_: Asked) -> Iterator[Step]:
    """Log messages without an end, and no answer."""
    message = notification("notifications/message", {"level": "info", "data": "still at it"})
    while True:
        yield Say(message)


@_on()
def endless_progress(asked: Asked) -> Iterator[Step]:
    """Progress without an end, and no answer."""
    for count in itertools.count():
        yield Say(notification("notifications/progress", {"progressToken": asked.progress_token, "progress": count}))


@_on()
def endless_rubbish(_: Asked) -> Iterator[Step]:
    """Messages without an end that nobody can read, and no answer."""
    while True:
        yield Say(b'{"jsonrpc":"2.0","id":987654321,"result":{"oh":nan}}')


# --- silence, and ends at the wrong moment ------------------------------------------------------------


@_on()
def silence(_: Asked) -> Iterator[Step]:
    """No answer."""
    yield EVER


@_on()
def closed(_: Asked) -> Iterator[Step]:
    """The connection is closed (over stdio the process ends) before the answer."""
    yield Close()


@_on()
def truncated(asked: Asked) -> Iterator[Step]:
    """Half of an answer, then the connection is closed (over stdio the process ends)."""
    whole = asked.answer()
    yield Pour(whole[: len(whole) // 2])
    yield Close()


@_on()
def closed_after(asked: Asked) -> Iterator[Step]:
    """The whole answer, then the connection is closed (over stdio the process ends)."""
    yield Say(asked.answer())
    yield Close()


@_on()
def half_closed(_: Asked) -> Iterator[Step]:
    """The server's side of the connection is closed (over stdio its stdout), while it goes on listening."""
    yield HalfClose()
    yield EVER


@_on()
def half_closed_midway(asked: Asked) -> Iterator[Step]:
    """Half of an answer, then the server's side is closed, while it goes on listening."""
    whole = asked.answer()
    yield Pour(whole[: len(whole) // 2])
    yield HalfClose()
    yield EVER


# --- over stdio alone ---------------------------------------------------------------------------------


@_on(only="stdio")
def rubbish_on_stdout(asked: Asked) -> Iterator[Step]:
    """Lines on stdout that are no messages, one with codes that a terminal obeys; then the answer."""
    for line in (
        b"Listening...\n",
        b"\x1b]0;owned\x07\x1b[2J\n",
        b"\xff\xfe\n",
        b"null\n",
        b"1\n",
        b"x" * 100_000 + b"\n",
    ):
        yield Pour(line)
    yield Say(asked.answer())


@_on(only="stdio")
def flood_on_stderr(asked: Asked) -> Iterator[Step]:
    """50 MB on stderr; then the answer."""
    for _ in range(50):
        yield Complain(_MEGABYTE[:-1] + b"\n")
    yield Say(asked.answer())


@_on("end", only="stdio")
def outlives(_: Asked) -> Iterator[Step]:
    """The process goes on after its stdin was closed, whatever it is told, until it is killed."""
    yield EVER
