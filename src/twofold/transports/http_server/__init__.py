"""HTTP/1 on a socket: where requests begin and end, what a connection may take, ASGI on top of it."""
