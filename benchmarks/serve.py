"""Runs one peer's server: `serve.py PEER WHAT …`, until stdin or a signal ends it.

WHAT is `stdio`; `tools COUNT`, over stdio with as many small tools; or `http PARSERS PORT`, where PARSERS is `fast`
(uvloop and httptools) or `plain` (asyncio and h11, as where the other two are not installed). Twofold and its floor
read HTTP themselves.
"""

import asyncio
import sys
from contextlib import AsyncExitStack

from payloads import CALLS, make_tools
from peers import make_fastmcp, make_mcp, make_twofold, open_twofold, request_bytes


def serve_stdio(peer: str, *count: str) -> None:
    """Serve as the peer's own `run` does."""
    functions = make_tools(int(count[0])) if count else tuple(CALLS)
    if peer == "fastmcp":
        make_fastmcp(functions).run("stdio", show_banner=False, log_level="WARNING")
    else:
        {"twofold": make_twofold, "mcp": make_mcp}[peer](functions).run("stdio")


def serve_http(peer: str, parsers: str, port: str) -> None:
    """Serve over HTTP; the official SDK and FastMCP at their fastest on the fast parsers."""
    if parsers == "plain":  # uvicorn takes the fast ones wherever they are installed
        sys.modules.update(dict.fromkeys(("uvloop", "httptools")))
    if peer == "twofold":
        make_twofold().run("streamable-http", port=int(port))
    elif peer == "floor":
        serve_floor(int(port))
    elif peer == "uvicorn":
        run_uvicorn(make_floor(), int(port), lifespan="off")
    elif parsers == "plain":
        serve_default(peer, int(port))
    elif peer == "mcp":
        run_uvicorn(make_mcp().streamable_http_app(json_response=True, stateless_http=True), int(port), lifespan="on")
    else:
        run_uvicorn(make_fastmcp().http_app(json_response=True, stateless_http=True), int(port), lifespan="on")


def serve_floor(port: int) -> None:
    """Serve canned bytes on the very HTTP server that Twofold runs on."""
    from twofold.server.serve_http import serve_http  # of the peers, only this one has it

    serve_http(make_floor(), host="127.0.0.1", port=port)


def serve_default(peer: str, port: int) -> None:
    """Serve with the options that the peer has when none is given. Nobody logs requests."""
    if peer == "mcp":
        make_mcp().run("streamable-http", port=port)
    else:
        make_fastmcp().run("http", port=port, show_banner=False, log_level="WARNING")


def make_floor():
    """Make an application that gives Twofold's own answers as canned bytes, by the path of the request."""
    answers = asyncio.run(can_answers())

    async def app(scope, receive, send) -> None:
        if scope["type"] == "lifespan":
            for what in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{what}.complete"})
            return
        while (await receive())["more_body"]:
            pass
        body = answers[scope["path"]]
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return app


async def can_answers() -> dict[str, bytes]:
    async with AsyncExitStack() as stack:
        answer = await open_twofold(stack)
        return {f"/{f.__name__}": await answer(request_bytes(f.__name__, arguments)) for f, arguments in CALLS.items()}


def run_uvicorn(app, port: int, *, lifespan: str) -> None:
    import uvicorn  # takes longer than everything else, and over stdio nobody needs it

    uvicorn.run(app, port=port, log_level="warning", access_log=False, lifespan=lifespan)


if __name__ == "__main__":
    peer, what, *rest = sys.argv[1:]
    {"stdio": serve_stdio, "tools": serve_stdio, "http": serve_http}[what](peer, *rest)
