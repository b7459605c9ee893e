"""What the tests of schemas share."""

import http.server
import threading
from collections.abc import Iterator

import pytest


@pytest.fixture
def trap() -> Iterator[tuple[str, list[str]]]:
    """A live server on the loopback that notes whatever is fetched from it."""
    hits: list[str] = []

    class Trap(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hits.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"true")

        def log_message(self, *args: object) -> None:
            """Stay quiet."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Trap) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", hits
        server.shutdown()
        thread.join()
