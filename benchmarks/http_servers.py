"""Runs one peer's HTTP server: `http_servers.py PEER PARSERS PORT`, until a signal ends it.

PARSERS is `fast` (uvloop and httptools) or `plain` (asyncio and h11, as where the other two are not installed).
"""

import asyncio
import sys
from contextlib import AsyncExitStack

from payloads import CALLS
from peers import make_mcp, make_twofold, open_twofold, request_bytes


def run_twofold(port: int) -> None:
    """Serve as `twofold serve … --http` does."""
    make_twofold().run("streamable-http", port=port)


def run_mcp(port: int) -> None:
    """Serve as the official SDK's own `run` does."""
    make_mcp().run("streamable-http", port=port)


def run_mcp_fastest(port: int) -> None:
    """Serve with what the official SDK has to offer for speed."""
    run_uvicorn(make_mcp().streamable_http_app(json_response=True, stateless_http=True), port, lifespan="on")


def run_floor(port: int) -> None:
    """Give Twofold's own answers as canned bytes, by the path of the request."""
    answers = asyncio.run(can_answers())

    async def app(scope, receive, send) -> None:
        while (await receive())["more_body"]:
            pass
        body = answers[scope["path"]]
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    run_uvicorn(app, port, lifespan="off")


async def can_answers() -> dict[str, bytes]:
    async with AsyncExitStack() as stack:
        answer = await open_twofold(stack)
        return {f"/{f.__name__}": await answer(request_bytes(f.__name__, arguments)) for f, arguments in CALLS.items()}


def run_uvicorn(app, port: int, *, lifespan: str) -> None:
    import uvicorn

    uvicorn.run(app, port=port, log_level="warning", access_log=False, lifespan=lifespan)


RUN = {"twofold": run_twofold, "mcp": run_mcp, "mcp-fastest": run_mcp_fastest, "floor": run_floor}

if __name__ == "__main__":
    if sys.argv[2] == "plain":  # uvicorn takes the fast ones wherever they are installed
        sys.modules.update(dict.fromkeys(("uvloop", "httptools")))
    RUN[sys.argv[1]](int(sys.argv[3]))
