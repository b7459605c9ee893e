"""Output schemas that no client should choke on; the tool's result is an honest one."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import msgspec

from twofold.protocol.structs import Json
from twofold.testing.hostile.steps import Asked, Misbehaviour, Say, Step

HONEST_VALUE: Mapping[str, Json] = {"value": "x"}
TEXT = "a" * 5_000 + "!"
"""On which a pattern that goes back and forth does so for ever."""

MakeSchema: TypeAlias = Callable[[Asked], Json]

SCHEMAS: dict[str, Misbehaviour] = {}
"""By name."""


def _publish(value: Json = HONEST_VALUE) -> Callable[[MakeSchema], MakeSchema]:
    """Put a tool with this output schema, and a value to be judged by it, into the table."""

    def put(make: MakeSchema) -> MakeSchema:
        name = make.__name__

        def define(asked: Asked) -> Json:
            schema = make(asked)
            return {"name": name, "inputSchema": {"type": "object"}, "outputSchema": schema}

        def play(asked: Asked) -> Iterator[Step]:
            result = {**asked.result, "structuredContent": value}
            yield Say(asked.answer(result=result))

        SCHEMAS[name] = Misbehaviour(name, (make.__doc__ or "").strip(), "tools/call", play, tool=define)
        return make

    return put


@_publish()
def deep_schema(_: Asked) -> Json:
    """A schema 300 levels deep."""
    return _nest(300)


@_publish()
def bottomless_schema(_: Asked) -> Json:
    """A schema 100,000 levels deep."""
    return _nest(100_000)


def _nest(levels: int) -> Json:
    return msgspec.Raw(b'{"items":' * levels + b"{}" + b"}" * levels)


@_publish()
def wide_schema(_: Asked) -> Json:
    """A schema of 100,000 properties."""
    return {"type": "object", "properties": {f"p{count}": {"type": "string"} for count in range(100_000)}}


@_publish()
def huge_schema(_: Asked) -> Json:
    """A schema of 20 MB, most of it one description."""
    return {"type": "object", "description": "x" * 20_000_000}


@_publish({"value": {"value": {"value": {}}}})
def self_referring_schema(_: Asked) -> Json:
    """A schema that refers to itself, as a tree's does: nothing is wrong with it."""
    return {"type": "object", "properties": {"value": {"$ref": "#"}}}


@_publish()
def circular_references(_: Asked) -> Json:
    """Two definitions that are nothing but references to each other."""
    return {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}


@_publish()
def exponential_schema(_: Asked) -> Json:
    """Sixty definitions that each try the next one twice: 2 to the 60th tries."""
    chain: dict[str, Json] = {
        f"d{count}": {"allOf": [{"$ref": f"#/$defs/d{count + 1}"}, {"$ref": f"#/$defs/d{count + 1}"}]}
        for count in range(60)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**chain, "d60": {"type": "object"}}}


@_publish()
def unevaluated_schema(_: Asked) -> Json:
    """`unevaluatedProperties` forty times inside one another, each of which looks at all below again."""
    schema: Json = {"type": "object"}
    for _level in range(40):
        schema = {"allOf": [schema], "unevaluatedProperties": True}
    return schema


@_publish()
def outside_reference(asked: Asked) -> Json:
    """A reference to the network."""
    return {"$ref": f"{asked.origin}/schema.json"}


@_publish()
def outside_file(_: Asked) -> Json:
    """A reference to a file of whoever judges by it."""
    return {"$ref": "file:///etc/hostname"}


@_publish()
def outside_dialect(asked: Asked) -> Json:
    """A meta-schema on the network."""
    return {"$schema": f"{asked.origin}/dialect.json", "type": "object"}


@_publish()
def outside_base(asked: Asked) -> Json:
    """An `$id` that makes a harmless reference lead to the network."""
    return {"$id": f"{asked.origin}/base.json", "$ref": "other.json"}


@_publish()
def dangling_reference(_: Asked) -> Json:
    """A reference to a definition that is not there."""
    return {"type": "object", "properties": {"value": {"$ref": "#/$defs/missing"}}}


@_publish()
def unknown_dialect(_: Asked) -> Json:
    """A dialect that does not exist."""
    return {"$schema": "https://json-schema.org/draft/2099-12/schema", "type": "object"}


@_publish()
def broken_schema(_: Asked) -> Json:
    """A schema that is none: `type` is a number."""
    return {"type": 7}


@_publish({"value": TEXT})
def backtracking_pattern(_: Asked) -> Json:
    """A pattern with a look-ahead that goes back and forth on the text it is given, practically for ever."""
    return {"type": "object", "properties": {"value": {"type": "string", "pattern": "^(?=(a+)+$)(a|aa)+$"}}}


@_publish({"value": TEXT})
def huge_pattern(_: Asked) -> Json:
    """A pattern whose repetitions multiply to a thousand million."""
    return {"type": "object", "properties": {"value": {"type": "string", "pattern": "((a{1000}){1000}){1000}"}}}


@_publish({"value": TEXT})
def linear_pattern(_: Asked) -> Json:
    """`(a+)+$`, which takes most engines for ever, and one of finite automata no time; the value does not fit."""
    return {"type": "object", "properties": {"value": {"type": "string", "pattern": "^(a+)+$"}}}


@_publish({"value": list(range(20_000))})
def unique_items(_: Asked) -> Json:
    """`uniqueItems` on 20,000 items, which takes some engines the square of that."""
    return {"type": "object", "properties": {"value": {"type": "array", "uniqueItems": True}}}
