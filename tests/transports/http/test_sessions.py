"""Sessions: bounded in number, in idle time and in what they keep; each for the client that opened it alone."""

import asyncio
import gc
import json
import weakref

import pytest

from tests.http_peer import HttpPeer, HttpSession, Response
from twofold import Limits, MCPServer
from twofold.transports.http.reply import Refusal
from twofold.transports.http.sessions import Session, Sessions

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
}
CHANGED = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'


class Agreed:
    """What a handshake agreed on."""

    def __init__(self, revision: str) -> None:
        self.revision = revision


class ServerEnd:
    """The server's end of a session, in which as much runs as the test says."""

    def __init__(self, revision: str = "2025-11-25", *, running: int = 0) -> None:
        self.session = Agreed(revision)
        self.running = running
        self.graces: list[float] = []

    async def close(self, *, grace_seconds: float) -> None:
        self.graces.append(grace_seconds)


def open_session(sessions: Sessions, principal: object = "ann", connection: ServerEnd | None = None) -> Session:
    session = sessions.prepare(principal)
    sessions.admit(session, connection or ServerEnd())
    return session


def finish_stream(session: Session, answer: bytes = b"answer") -> weakref.ref:
    """Run a request to its end; gives a look at what is kept of it that does not itself keep it."""
    stream = session.open_stream(True)
    stream.end(answer)
    return weakref.ref(stream)


def is_kept(stream: weakref.ref) -> bool:
    gc.collect()
    return stream() is not None


def knows(session: Session, event_id: str) -> bool:
    """Tell whether a client could resume after an event."""
    try:
        session.find_event(event_id)
    except Refusal:
        return False
    return True


async def until(is_so) -> None:
    """Wait for what a timer of the sessions does."""
    async with asyncio.timeout(20):
        while not is_so():
            await asyncio.sleep(0)


def start_listening(session: Session) -> Response:
    response = Response()
    response.task = asyncio.create_task(session.unasked.send_to(response.send))
    return response


def refusal_of(sessions: Sessions, session_id: str, principal: object) -> tuple[int, str]:
    with pytest.raises(Refusal) as caught:
        sessions.find(session_id.encode(), principal)
    return caught.value.status, caught.value.error.message


async def test_a_session_is_found_by_its_opener_alone(caplog):
    """Decision 13: to anybody else it does not exist: the refusal is the one for an id there never was."""
    sessions = Sessions(Limits(), lambda _: None)
    session = open_session(sessions, "ann")
    found = sessions.find(session.id.encode(), "ann")
    refusals = {
        refusal_of(sessions, session.id, "bob"),
        refusal_of(sessions, session.id, None),
        refusal_of(sessions, "x" * 32, "ann"),
        refusal_of(sessions, "", "ann"),
        refusal_of(sessions, "\x80", "ann"),
    }
    assert (found, len(refusals), {status for status, _ in refusals}) == (session, 1, {404})
    assert [record.getMessage() for record in caplog.records] == [
        "a session was asked for by somebody else than who opened it"
    ] * 2
    await sessions.close(grace_seconds=0)


async def test_a_session_that_was_not_admitted_is_not_found():
    """Decision 13: it exists once `initialize` was answered."""
    sessions = Sessions(Limits(), lambda _: None)
    session = sessions.prepare("ann")
    assert (session.is_open, refusal_of(sessions, session.id, "ann")[0]) == (False, 404)
    with pytest.raises(RuntimeError, match="not open yet"):
        _ = session.connection


async def test_session_ids_cannot_be_guessed():
    """2025-11-25, Session Management: globally unique, cryptographically secure, visible ASCII."""
    sessions = Sessions(Limits(), lambda _: None)
    ids = {sessions.prepare(None).id for _ in range(100)}
    assert len(ids) == 100
    assert {len(each) for each in ids} == {32}
    assert all(0x21 <= ord(char) <= 0x7E for each in ids for char in each)


async def test_finished_streams_are_forgotten_with_their_session():
    """B3, decision 13: what a client could resume is kept for it, and no longer than its session; others keep theirs."""
    ended = []
    sessions = Sessions(Limits(), ended.append)
    connection = ServerEnd()
    session, other = open_session(sessions, connection=connection), open_session(sessions)
    session_id = session.id
    streams = [finish_stream(session), finish_stream(session)]
    others = finish_stream(other)
    kept_before = [is_kept(each) for each in (*streams, others)]
    await sessions.end(session)
    del session
    kept_after = [is_kept(each) for each in (*streams, others)]
    assert (kept_before, kept_after) == ([True] * 3, [False, False, True])
    assert (ended, connection.graces) == ([connection], [0.0])
    assert refusal_of(sessions, session_id, "ann")[0] == 404
    await sessions.close(grace_seconds=0)


async def test_ending_a_session_twice_ends_it_once():
    """2025-11-25, Session Management: two DELETEs at once are one end."""
    ended = []
    sessions = Sessions(Limits(), ended.append)
    session = open_session(sessions)
    await asyncio.gather(sessions.end(session), sessions.end(session))
    assert ended == [session.connection]


async def test_a_finished_stream_is_forgotten_after_a_while():
    """B3: after `retention_seconds`, though its session goes on; then an event of it is refused by name."""
    sessions = Sessions(Limits(retention_seconds=0.01, sweep_seconds=0.005), lambda _: None)
    session = open_session(sessions)
    stream = finish_stream(session)
    kept_before = knows(session, "1-1")
    await until(lambda: not knows(session, "1-1"))
    with pytest.raises(Refusal, match=r"Last-Event-ID '1-1' is of no stream of this session that is still kept"):
        session.find_event("1-1")
    assert (kept_before, is_kept(stream)) == (True, False)
    await sessions.close(grace_seconds=0)


async def test_a_stream_that_ends_after_the_last_session_is_forgotten_after_a_while():
    """B3: a call that did not heed the end of its session writes its answer to nobody; that is no longer kept."""
    sessions = Sessions(Limits(retention_seconds=0.01, sweep_seconds=0.005), lambda _: None)
    session = open_session(sessions)
    await sessions.end(session)
    stream = finish_stream(session)
    kept_before = knows(session, "1-1")
    await until(lambda: not knows(session, "1-1"))
    assert (kept_before, is_kept(stream)) == (True, False)


async def test_nothing_wakes_up_for_sessions_once_there_are_none():
    """B3: the last session's end leaves no timer that goes on for ever."""
    sessions = Sessions(Limits(sweep_seconds=0), lambda _: None)
    session = open_session(sessions)
    finish_stream(session)
    await sessions.end(session)
    looks = weakref.ref(sessions)
    del sessions, session
    for _ in range(100):
        await asyncio.sleep(0)
    assert not is_kept(looks)


@pytest.mark.parametrize(("bound", "kept"), [(0, 0), (499, 0), (500, 1), (1499, 2), (5000, 4)])
async def test_finished_streams_of_all_sessions_share_a_bound(bound, kept):
    """B3, decision 13: `retained_bytes`, the oldest first, whoever's it is."""
    sessions = Sessions(Limits(retained_bytes=bound), lambda _: None)
    both = [open_session(sessions), open_session(sessions)]
    overhead = len(b"id: 1-1\nretry: 1000\ndata: \n\n") + len(b"id: 1-2\ndata: \n\n")
    for number in range(4):
        finish_stream(both[number % 2], b"x" * (500 - overhead))
    found = [knows(both[number % 2], f"{1 + number // 2}-2") for number in range(4)]
    assert found == [False] * (4 - kept) + [True] * kept
    await sessions.close(grace_seconds=0)


async def test_a_change_told_again_and_again_to_nobody_is_kept_once():
    """B3, decision 13: what was said once is enough for who is not there; another change is another."""
    sessions = Sessions(Limits(), lambda _: None)
    session = open_session(sessions)
    for _ in range(2000):
        session.write(CHANGED)
        session.write(b"other")
    kept_bytes = session.unasked.kept_bytes
    response = start_listening(session)
    await response.until(lambda: len(response.events) == 3)
    assert [event.data for event in response.events] == [b"", CHANGED, b"other"]
    assert kept_bytes == len(response.body)
    await sessions.close(grace_seconds=0)
    await response.whole()


async def test_a_change_is_told_again_to_who_has_heard_of_one():
    """B1: each change counts for who listens, and the next for who has gone since."""
    sessions = Sessions(Limits(), lambda _: None)
    session = open_session(sessions)
    session.write(CHANGED)
    response = start_listening(session)
    await response.until(lambda: len(response.events) == 2)
    for _ in range(3):
        session.write(CHANGED)
    await response.until(lambda: len(response.events) == 5)
    response.task.cancel()
    await asyncio.wait({response.task}, timeout=20)
    for _ in range(3):
        session.write(CHANGED)
    again = start_listening(session)
    await again.until(lambda: again.events)
    await sessions.close(grace_seconds=0)
    await again.whole()
    assert [event.id for event in response.events] == ["0-1", "0-2", "0-3", "0-4", "0-5"]
    assert [(event.id, event.data) for event in again.events] == [("0-6", CHANGED)]


async def test_a_thousand_changes_of_a_server_wait_as_one():
    """B3: whole, from the tool that is added and removed to the client that at last listens."""
    server = MCPServer("s")
    async with HttpPeer(server) as http, HttpSession(http) as session:
        for _ in range(1000):
            server.add_tool(lambda: None, name="late", description="Late.")
            await asyncio.sleep(0)
            server.remove_tool("late")
            await asyncio.sleep(0)
        listening = session.get()
        await listening.until(lambda: len(listening.events) == 2)
        server.add_tool(lambda: None, name="last", description="Last.")
        await listening.until(lambda: len(listening.events) == 3)
    assert [message["method"] for message in listening.messages] == ["notifications/tools/list_changed"] * 2


@pytest.mark.parametrize(("revision", "primes"), [("2025-03-26", False), ("2025-06-18", False), ("2025-11-25", True)])
async def test_only_clients_that_know_it_get_a_priming_event(revision, primes):
    """Decision 13: earlier ones take an event without data for a broken message."""
    sessions = Sessions(Limits(), lambda _: None)
    session = open_session(sessions, connection=ServerEnd(revision))
    assert (session.open_stream(True).has_unsent, session.unasked.has_unsent) == (primes, primes)
    await sessions.close(grace_seconds=0)


@pytest.mark.parametrize(
    "event_id",
    [
        "",
        "-",
        "1",
        "1-",
        "1-0",
        "1-3",
        "2-1",
        "-1",
        "1--1",
        "1-1-1",
        "1-٣",
        "1-²",
        "1-" + "1" * 5000,
        "x" * 5000,
        "0-1",
    ],
)
async def test_an_event_there_never_was_is_refused_by_name(event_id):
    """2025-11-25, Resumability: `Last-Event-ID` is one that this session's streams gave; shown cut."""
    sessions = Sessions(Limits(), lambda _: None)
    session = open_session(sessions)
    session.open_stream(True).write(b"one")
    with pytest.raises(Refusal) as caught:
        session.find_event(event_id)
    message = caught.value.error.message
    assert (caught.value.status, message.startswith(f"Last-Event-ID {event_id!r:.80}")) == (400, True)
    assert len(message) < 300
    await sessions.close(grace_seconds=0)


async def test_an_event_is_found_with_its_stream():
    """2025-11-25, Resumability: ids are unique across the streams of a session."""
    sessions = Sessions(Limits(), lambda _: None)
    session = open_session(sessions)
    streams = [session.open_stream(True), session.open_stream(True), session.unasked]
    for stream in streams:
        stream.write(b"one")
    assert [session.find_event(each) for each in ("1-2", "2-1", "0-2")] == [
        (streams[0], 2),
        (streams[1], 1),
        (streams[2], 2),
    ]
    await sessions.close(grace_seconds=0)


async def test_fifty_handshakes_at_once_open_as_many_sessions_as_there_may_be():
    """B3: the bound holds whatever comes at once; who is refused leaves nothing behind."""
    server = MCPServer("s")
    async with HttpPeer(server, limits=Limits(sessions=5)) as http:
        responses = await asyncio.gather(*(http.post(INITIALIZE).whole() for _ in range(50)))
        connections = len(server._connections)
    statuses = [response.status for response in responses]
    admitted = {response.headers["mcp-session-id"] for response in responses if response.status == 200}
    refused = [response for response in responses if response.status != 200]
    assert (statuses.count(200), statuses.count(503), len(admitted), connections) == (5, 45, 5, 5)
    assert {(each.headers["retry-after"], "mcp-session-id" in each.headers) for each in refused} == {("60", False)}
    assert {json.loads(each.body)["error"]["message"] for each in refused} == {
        "busy: 5 sessions are open, and all are in use; try again later"
    }


async def test_the_one_idle_longest_gives_way():
    """Decision 13: neither one in use nor one that was used since; whoever is admitted counts at once."""
    ended = []
    sessions = Sessions(Limits(sessions=3, session_yielding_seconds=0), ended.append)
    busy = open_session(sessions, connection=ServerEnd(running=1))
    first, second = open_session(sessions), open_session(sessions)
    first.used_at -= 20
    second.used_at -= 10
    sessions.find(first.id.encode(), "ann")
    newest = open_session(sessions)
    await until(lambda: ended)
    found = [sessions.find(each.id.encode(), "ann") for each in (busy, first, newest)]
    assert (ended, found) == ([second.connection], [busy, first, newest])
    assert refusal_of(sessions, second.id, "ann")[0] == 404
    await sessions.close(grace_seconds=0)


async def test_a_session_in_use_does_not_give_way():
    """Decision 13: the newcomer is asked to come again."""
    sessions = Sessions(Limits(sessions=1, session_yielding_seconds=0), lambda _: None)
    open_session(sessions, connection=ServerEnd(running=1))
    newcomer = sessions.prepare("bob")
    with pytest.raises(Refusal, match="busy: 1 sessions are open") as caught:
        sessions.admit(newcomer, ServerEnd())
    assert (caught.value.status, newcomer.is_open) == (503, False)
    await sessions.close(grace_seconds=0)


async def test_only_sessions_in_which_nothing_runs_and_nobody_listens_are_swept():
    """Decision 13: after `session_idle_seconds`; who listens or works is not idle, however long it takes."""
    ended = []
    sessions = Sessions(Limits(sweep_seconds=0.002, session_idle_seconds=0.01), ended.append)
    busy = open_session(sessions, connection=ServerEnd(running=1))
    listens, idle = open_session(sessions), open_session(sessions)
    response = start_listening(listens)
    await response.until(lambda: response.events)
    await until(lambda: ended)
    only_idle = list(ended)
    busy.connection.running = 0
    await until(lambda: len(ended) == 2)
    assert (only_idle, ended) == ([idle.connection], [idle.connection, busy.connection])
    assert sessions.find(listens.id.encode(), "ann") is listens
    await sessions.close(grace_seconds=0)
    await response.whole()


async def test_the_end_gives_what_runs_its_time_and_lets_listeners_go():
    """B3: every connection is closed with the grace that was said, and told of; streams end without an answer."""
    ended = []
    sessions = Sessions(Limits(), ended.append)
    connections = [ServerEnd(running=1), ServerEnd()]
    both = [open_session(sessions, connection=each) for each in connections]
    listening = start_listening(both[0])
    await listening.until(lambda: listening.events)
    await sessions.close(grace_seconds=1.5)
    await listening.whole()
    assert [each.graces for each in connections] == [[1.5], [1.5]]
    assert ended == connections
    assert refusal_of(sessions, both[0].id, "ann")[0] == 404


async def test_listeners_are_let_go_before_the_sessions_end():
    """B3: whoever only waits does not hold up the end; what runs goes on."""
    sessions = Sessions(Limits(), lambda _: None)
    session = open_session(sessions, connection=ServerEnd(running=1))
    listening = start_listening(session)
    await listening.until(lambda: listening.events)
    sessions.stop_streams()
    await listening.whole()
    assert sessions.find(session.id.encode(), "ann") is session
    await sessions.close(grace_seconds=0)
