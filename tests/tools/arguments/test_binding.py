"""When a binder is made, and that it binds alike whenever that is."""

import threading

import msgspec
import pytest
from pydantic import BaseModel, ConfigDict

from twofold.errors import ArgumentsRefused, InvalidDefinition
from twofold.tools.arguments.binding import LARGE_BYTES, Pieces, SignatureBinder
from twofold.tools.arguments.parameters import build_parameters


class Asked:
    """Stands for the context."""


class Maker:
    """Makes a binder that takes `{"x": …}`, and counts."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def make_pieces(self) -> Pieces:
        self.made.append("pieces")
        return Pieces(
            msgspec.json.Decoder(dict[str, int]).decode, asks_schema=False, looks_for_infinity=False, growths={}
        )

    def make_hasty_validate(self):
        self.made.append("hasty")
        return msgspec.json.Decoder(dict[str, int]).decode

    def compile_schema(self):
        self.made.append("schema")


def make_binder(maker: Maker, *, is_certain: bool) -> SignatureBinder:
    return SignatureBinder("x", maker=maker, names=["x"], positional=[], mirrored=frozenset(), is_certain=is_certain)


def test_what_may_fail_is_made_at_registration():
    """An author learns of it when the server starts, not a model when it calls."""
    maker = Maker()
    make_binder(maker, is_certain=False)
    assert maker.made == ["pieces", "hasty", "schema"]


def test_what_cannot_fail_is_made_by_the_first_call_that_needs_it_and_once():
    maker = Maker()
    binder = make_binder(maker, is_certain=True)
    assert maker.made == []
    assert [binder.bind(b'{"x":1}') for _ in range(3)] == [((), {"x": 1})] * 3
    assert maker.made == ["pieces"]
    large = b'{"x":1%b}' % (b" " * LARGE_BYTES)
    assert [binder.bind(large) for _ in range(2)] == [((), {"x": 1})] * 2
    assert maker.made == ["pieces", "hasty"]


def test_threads_that_come_first_at_once_all_bind():
    """A client may send many calls of a tool that was never called."""
    for _ in range(50):
        bind = build_parameters(take, tool_name="take", context_type=Asked).bind
        start, bound = threading.Barrier(4), []

        def run(bind=bind, start=start, bound=bound) -> None:
            start.wait(10)
            bound.append(bind(b'{"x":1.0,"names":["a"]}'))

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert bound == [((), {"x": 1, "names": ["a"]})] * 4


def take(x: int, names: list[str]) -> None: ...


def test_the_first_call_of_all_can_be_the_one_that_is_refused():
    bind = build_parameters(take, tool_name="take", context_type=Asked).bind
    with pytest.raises(ArgumentsRefused, match="argument 'x': expected an integer, got a string"):
        bind(b'{"x":"one","names":[]}')
    assert bind(b'{"x":1,"names":[]}') == ((), {"x": 1, "names": []})


class Costly(BaseModel):
    model_config = ConfigDict(json_schema_extra={"type": "nothing JSON has"})


def test_a_schema_that_cannot_be_compiled_is_refused_at_registration():
    def costly(x: Costly) -> None: ...

    with pytest.raises(InvalidDefinition, match="tool 'costly', input schema"):
        build_parameters(costly, tool_name="costly", context_type=Asked)
