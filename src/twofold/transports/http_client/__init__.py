"""Streamable HTTP, the client's side; `link` loads httpx2, an optional dependency."""
