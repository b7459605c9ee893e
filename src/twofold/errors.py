"""Every error of Twofold, in one tree.

```text
TwofoldError
├─ InvalidSignature      a function cannot be a tool (also a TypeError)
├─ InvalidDefinition     a name, icon, header, hint or schema cannot be published (also a ValueError)
├─ ProtocolError         answered as a JSON-RPC error
│  ├─ ParseError               -32700
│  ├─ InvalidRequest           -32600
│  ├─ MethodNotFound           -32601
│  ├─ InvalidParams            -32602
│  ├─ InternalError            -32603
│  │  └─ ServerBusy                 over HTTP with 503 and `Retry-After`
│  ├─ HeaderMismatch           -32020
│  ├─ MissingRequiredClientCapability  -32021
│  └─ UnsupportedProtocolVersion  -32022
├─ ToolError             answered as a tool result with `isError`, its text for the model
│  ├─ ArgumentsRefused         what the caller sent does not fit the tool
│  └─ ResultRefused            what the tool returned does not fit its contract
├─ AuthorizationError    answered as an HTTP status with a challenge
│  ├─ Unauthorized             401: no token, or none that is accepted
│  └─ Forbidden                403: a token that does not reach so far
├─ ContractError         a result that breaks its tool's contract; carries the whole result
│  └─ ResultTypeMismatch       it does not fit the type that was asked for
├─ InputRequired         a call goes on only if the server's questions are answered
├─ OutcomeUnknown        a call may have been carried out, and its answer will not come
└─ TransportError        the channel cannot be used
   ├─ NotSent                  nothing of it has reached the peer
   └─ HttpStatusError          the peer refused it by an HTTP status alone
      └─ SessionGone              it has ended the session; a new one can be begun
```

`ToolError` and its kinds are for the model, which can mend its call; `ProtocolError` is for the
program at the other end; `AuthorizationError` is for whoever obtains its tokens; the first two are
for the person who writes the server.
"""

from collections.abc import Mapping, Sequence
from typing import Any


class TwofoldError(Exception):
    """The root of every error that Twofold raises on purpose."""


class InvalidSignature(TwofoldError, TypeError):
    """A function's signature or return type cannot become a tool; raised at registration."""


class InvalidDefinition(TwofoldError, ValueError):
    """A part of a definition (name, icon, header, hint, schema) cannot be published; raised at registration."""


class ProtocolError(TwofoldError):
    """An error of the protocol: raised in a tool or handler, it is answered as a JSON-RPC error.

    Args:
        code: A JSON-RPC error code. The specification keeps -32768 to -32000 for itself.
        message: One sentence for the developer at the other end.
        data: Any JSON value with more detail, or None to send none.

    Raises:
        TypeError: The code is no whole number, or the message no text.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        if type(code) is not int or not isinstance(message, str):
            raise TypeError(f"a protocol error has a whole number as code and a text, got {code!r} and {message!r:.80}")
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class _CodedError(ProtocolError):
    """A protocol error whose code is fixed by its class."""

    fixed_code: int

    def __init__(self, message: str, data: Any = None) -> None:
        super().__init__(self.fixed_code, message, data)


class ParseError(_CodedError):
    """The bytes are no JSON text; the peer's fault."""

    fixed_code = -32700


class InvalidRequest(_CodedError):
    """The JSON is no JSON-RPC message, or cannot be one now (an id in use, say); the peer's fault."""

    fixed_code = -32600


class MethodNotFound(_CodedError):
    """The method does not exist in the peer's revision; the peer's fault."""

    fixed_code = -32601


class InvalidParams(_CodedError):
    """The parameters do not fit the method (an unknown tool, a missing `_meta` field); the peer's fault."""

    fixed_code = -32602


class InternalError(_CodedError):
    """The server could not do its part: a fault of its own, or more to do than it can hold."""

    fixed_code = -32603


class ServerBusy(InternalError):
    """The server has more to do than it can hold, or is about to end: nothing was begun; the same may do later."""


class HeaderMismatch(_CodedError):
    """An HTTP header lacks, is malformed, or says something else than the body; the peer's fault."""

    fixed_code = -32020


class MissingRequiredClientCapability(ProtocolError):
    """The request cannot be carried out for a client without these capabilities.

    Args:
        required: As a client declares them: `{"sampling": {}}`.
        message: One sentence for the developer at the other end.

    Raises:
        TypeError: `required` is no mapping of names to mappings.
    """

    fixed_code = -32021

    def __init__(self, required: Mapping[str, Mapping[str, Any]], message: str | None = None) -> None:
        if not isinstance(required, Mapping) or not all(isinstance(each, Mapping) for each in required.values()):
            raise TypeError(f"required capabilities are given as {{'sampling': {{}}}}, got {required!r:.80}")
        names = ", ".join(map(repr, required))
        super().__init__(
            self.fixed_code,
            message or f"the client does not declare what this needs: {names}",
            {"requiredCapabilities": {name: dict(each) for name, each in required.items()}},
        )


class UnsupportedProtocolVersion(_CodedError):
    """The request names a revision this server does not speak; its data lists those it does."""

    fixed_code = -32022


class ToolError(TwofoldError):
    """A failure that the model should read: its message is sent as it stands, with `isError`."""


class ArgumentsRefused(ToolError):
    """The arguments of a call do not fit the tool; the message names every problem of the call at once.

    Attributes:
        problems: One sentence for each problem.
    """

    def __init__(self, message: str, problems: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems) or (message,)


class ResultRefused(ToolError):
    """What a tool returned does not fit what it publishes; the message names the place, and no value.

    Attributes:
        details: The same with the values, for the log: they are nothing that the author meant to send.
    """

    def __init__(self, message: str, *, details: str | None = None) -> None:
        super().__init__(message)
        self.details = message if details is None else details


class AuthorizationError(TwofoldError):
    """A request that is not allowed; answered as an HTTP status, before anything of it is looked at.

    Args:
        message: One sentence, sent to the client; never the token or a part of it.
        scope: The scopes that would be needed, for the challenge.
    """

    def __init__(self, message: str, *, scope: Sequence[str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.scope = scope


class Unauthorized(AuthorizationError):
    """There is no token, or it is expired, revoked or meant for another server: status 401."""


class Forbidden(AuthorizationError):
    """The token is good, but does not reach so far: status 403."""


class ContractError(TwofoldError):
    """A result that does not keep what its tool promised, or cannot be judged by it.

    Attributes:
        tool: The tool's name.
        verdict: What was found.
        result: The whole result, as the server sent it.
    """

    def __init__(self, message: str, *, tool: str, verdict: Any, result: Any) -> None:
        super().__init__(message)
        self.tool = tool
        self.verdict = verdict
        self.result = result


class ResultTypeMismatch(ContractError):
    """A result that keeps its contract, but is not of the type that the caller asked for."""


class InputRequired(TwofoldError):
    """A call that is not finished: the server asks something first, and this client has nobody who answers.

    Attributes:
        tool: The tool's name.
        requests: What it asks, by its own keys, as it came.
    """

    def __init__(self, message: str, *, tool: str, requests: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.tool = tool
        self.requests = requests


class OutcomeUnknown(TwofoldError):
    """A call that may have been carried out, although its answer will not come: repeat it only where that is safe.

    Attributes:
        tool: The tool's name.
        reason: What happened: a timeout, a lost connection, an answer that cannot be read.
    """

    def __init__(self, message: str, *, tool: str, reason: str) -> None:
        super().__init__(message)
        self.tool = tool
        self.reason = reason


class TransportError(TwofoldError):
    """The channel to the peer cannot be opened or used."""


class NotSent(TransportError):
    """Nothing of a message has reached the peer, so that it certainly did nothing about it."""


class HttpStatusError(TransportError):
    """An HTTP server refused a message by its status, without an error of the protocol.

    Attributes:
        status: The HTTP status.
        body: The start of what it said.
        challenge: Its `WWW-Authenticate`, if any.
    """

    def __init__(self, message: str, *, status: int, body: str = "", challenge: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = body
        self.challenge = challenge


class SessionGone(HttpStatusError):
    """The server no longer knows the session: nothing was done, and `initialize` begins a new one."""
