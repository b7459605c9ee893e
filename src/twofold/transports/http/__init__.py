"""Streamable HTTP as a plain ASGI callable: who may ask, what came, what is answered."""
