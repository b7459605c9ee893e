"""A server over stdio that gives canned bytes, with the request's id put in: a floor, and what clients are measured on.

Run as `canned.py FILE [CORE]`: JSON of method or tool name → result, made by a real server beforehand; and the core to
run on, where it is another than its parent's.
"""

import json
import os
import sys
from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

_UNKNOWN = b'"error":{"code":-32601,"message":"canned answers only"}'
"""What a method gets that nothing was canned for, such as the question to be told of changes."""


class Params(msgspec.Struct):
    """What tells calls apart."""

    name: str = ""


class Request(msgspec.Struct):
    """A request, as far as it is looked at."""

    method: str
    id: msgspec.Raw = msgspec.Raw(b"")
    params: Params = msgspec.field(default_factory=Params)


async def make_canned(names: Iterable[str]) -> str:
    """Have Twofold answer once to these calls and to what a client asks first, and give the results as JSON."""
    from peers import arguments_of, message_bytes, open_twofold, request_bytes  # the server that answers needs none

    requests = {method: message_bytes(method, {}) for method in ("server/discover", "tools/list")}
    requests |= {name: request_bytes(name, arguments_of(name)) for name in names}
    async with AsyncExitStack() as stack:
        answer = await open_twofold(stack)
        bodies = {name: await answer(line) for name, line in requests.items()}
    return json.dumps({name: body[body.index(b'"result":') + 9 : -1].decode() for name, body in bodies.items()})


def main() -> None:
    """Answer every request until stdin ends."""
    if len(sys.argv) > 2:
        os.sched_setaffinity(0, {int(sys.argv[2])})
    results = {name: text.encode() for name, text in json.loads(Path(sys.argv[1]).read_text()).items()}
    decode = msgspec.json.Decoder(Request).decode
    out = sys.stdout.buffer
    for line in sys.stdin.buffer:
        request = decode(line)
        if request.id:
            result = results.get(request.params.name or request.method)
            answer = _UNKNOWN if result is None else b'"result":' + result
            out.write(b'{"jsonrpc":"2.0","id":' + bytes(request.id) + b"," + answer + b"}\n")
            out.flush()


if __name__ == "__main__":
    main()
