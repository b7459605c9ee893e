"""One HTTP request on its way through the application: what is known of it, and the ways back."""

from twofold.transports.http.asgi import Receive, Request, Scope, Send, is_own, known_head
from twofold.transports.http.places import Place
from twofold.transports.http.reply import Headers
from twofold.transports.http.request import Head


class Inbound:
    """A request, from its scope to its answer.

    Args:
        scope: What ASGI says of it.
        receive: Gives its body.
        send: Takes its answer.

    Attributes:
        head: Its head, once it was read.
        extra: Headers that each answer to it has.
        principal: Who asks, as the author's `authorize` said; else None.
        place: The place it takes.
        known: Our server's request, if that is what serves, and its headers came here as they were.
    """

    __slots__ = ("_answers_at_once", "extra", "head", "known", "place", "principal", "receive", "scope", "send")

    head: Head
    place: Place

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self.send = send
        self.extra: Headers = ()
        self.principal: object = None
        self.known: Request | None = known_head(scope)
        self._answers_at_once = self.known is not None and is_own(send, self.known.send)

    def take_body(self) -> bytes | None:
        """Take the whole body, if it is here already; else `receive` gives it."""
        known = self.known
        return known.take_body() if known is not None and is_own(self.receive, known.receive) else None

    async def reply(self, status: int, fields: Headers, body: bytes) -> None:
        """Send a whole answer, in one step where nothing stands between."""
        known = self.known if self._answers_at_once else None
        if known is None or not known.answer(status, fields, body):
            await self.send({"type": "http.response.start", "status": status, "headers": list(fields)})
            await self.send({"type": "http.response.body", "body": body})
