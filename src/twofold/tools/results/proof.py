"""Proof that bytes conform to a published schema, as cheaply as the schema allows.

Most schemas say what a msgspec type can say. Decoding the bytes as that type proves every one of them in a
single pass, in half the time of a decode and a validator's run; for the rest, and to name what is wrong,
the bytes are decoded and judged by the schema itself. So nothing rests on what pydantic was told or what
became of the value since: aliases, mutated instances and subclasses are seen in the bytes.
"""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, Union

import msgspec

from twofold.contract.compiling import compile_schema, is_simple
from twofold.contract.plain import Path, format_path, leave_value_out
from twofold.errors import ResultRefused
from twofold.tools.results.verbatim import explain_no_json

if TYPE_CHECKING:
    from twofold.contract.schema import CompiledSchema

Decode: TypeAlias = Callable[[bytes], Any]
"""Raises msgspec.MsgspecError for what may not conform."""

_ANNOTATIONS = frozenset(
    (
        *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "format"),
        *("contentEncoding", "contentMediaType", "$comment", "$defs"),
    )
)
"""Keywords that never make a value invalid (JSON Schema 2020-12; `format` is an annotation by default)."""
_BOUNDS = {"minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt"}
_LENGTHS = {"minLength": "min_length", "maxLength": "max_length"}
_SIZES = {"minItems": "min_length", "maxItems": "max_length"}
_MAX_SHOWN_PROBLEMS = 20


class Proof:
    """Judges the bytes of results against one published schema.

    A class with a cached property: the validator (about 0.2 ms to make) is wanted at once only for schemas that come
    from outside and may not be schemas at all, or that no msgspec type can express and that may be too costly.
    """

    def __init__(
        self,
        schema: dict[str, Any],
        *,
        make_decode: Callable[[], Decode | None],
        is_wrapped: bool,
        is_generated: bool,
        what: str,
    ) -> None:
        """Prepare to judge.

        Args:
            schema: The output schema as published.
            make_decode: Gives what `compile_decoder` makes of it; asked once the schema is known to be within bounds.
            is_wrapped: The schema is of `{"result": value}`, the bytes are of the value.
            is_generated: The schema was made from a type, so that it surely is one.
            what: The schema's name in messages (`tool 'x', output schema`).

        Raises:
            InvalidDefinition: The schema cannot be used.
        """
        self._schema = schema
        self._is_wrapped = is_wrapped
        self._what = what
        if not is_generated:
            _ = self._compiled  # first of all: it knows the bounds within which a schema can be walked
        self._decode = make_decode()
        if self._decode is None and not is_simple(schema):
            _ = self._compiled

    @property
    def is_immediate(self) -> bool:
        """Whether the check costs so little that it belongs to making the bytes."""
        return self._decode is not None

    @functools.cached_property
    def _compiled(self) -> "CompiledSchema":
        return compile_schema(self._schema, what=self._what)

    @property
    def place(self) -> Path:
        """Where the value stands in what the schema describes."""
        return ("result",) if self._is_wrapped else ()

    def check(self, raw: bytes) -> None:
        """Refuse bytes that do not conform.

        Raises:
            ResultRefused: Naming every place.
        """
        if self._decode is not None:
            try:
                self._decode(raw)
            except (msgspec.MsgspecError, RecursionError):
                self.check_fully(raw)  # the type is stricter than the schema in places (`1.0` is an integer)
        else:
            self.check_fully(raw)

    def check_fully(self, raw: bytes) -> None:
        """Refuse bytes that do not conform, by the schema itself.

        Raises:
            ResultRefused: Naming every place.
        """
        try:
            value = msgspec.json.decode(raw)
        except msgspec.DecodeError:
            explain_no_json(raw, at=self.place)
        whole = {"result": value} if self._is_wrapped else value
        if self._compiled.is_valid(whole):
            return
        found = self._compiled.find_problems(whole, limit=_MAX_SHOWN_PROBLEMS)
        without_values = [(path, leave_value_out(sentence, path=path, whole=whole)) for path, sentence in found]
        raise ResultRefused(_list_problems(without_values), details=_list_problems(found))


def _list_problems(problems: list[tuple[Path, str]]) -> str:
    head = "the value does not conform to the tool's output schema"
    lines = [f"{format_path(path) or 'the result'}: {sentence}" for path, sentence in problems]
    return f"{head}: {lines[0]}" if len(lines) == 1 else "\n- ".join((f"{head}:", *lines))


def compile_decoder(schema: dict[str, Any], *, is_wrapped: bool = False) -> Decode | None:
    """Make a decoder that accepts only JSON valid under a schema, though maybe not all of it.

    Args:
        schema: A JSON Schema (2020-12).
        is_wrapped: Accept the value of its property `result` instead.

    Returns:
        The decoder, which raises msgspec.MsgspecError; None where no msgspec type is as strict as the schema.
    """
    if "$schema" in schema:  # another dialect may read the same words differently
        return None
    try:
        translate = _Translation(schema.get("$defs", {}))
        root = schema["properties"]["result"] if is_wrapped else schema
        return msgspec.json.Decoder(translate.visit(root)).decode
    except (_Inexpressible, TypeError, ValueError):  # the latter two: msgspec has no decoder for such a type
        return None


class _Inexpressible(Exception):
    """No msgspec type is as strict as this schema."""


class _Translation:
    """JSON Schema → msgspec type, refusing whatever it does not know."""

    def __init__(self, definitions: dict[str, Any]) -> None:
        self._definitions = definitions
        self._visited: dict[str, Any] = {}

    def visit(self, schema: Any) -> Any:
        if schema is False:
            raise _Inexpressible
        words = {} if schema is True else {key: word for key, word in schema.items() if key not in _ANNOTATIONS}
        kind = words.pop("type", None)
        if kind is None:
            return self._visit_untyped(words) if words else msgspec.Raw
        if kind == "object":
            return self._visit_object(words)
        if kind == "array":
            return self._visit_array(words)
        if "enum" in words or "const" in words:
            return _make_literal(kind, words)
        return _make_scalar(kind, words)

    def _visit_untyped(self, words: dict[str, Any]) -> Any:
        if set(words) == {"$ref"}:
            return self._visit_reference(words["$ref"])
        if set(words) != {"anyOf"}:
            raise _Inexpressible
        choices = tuple(self.visit(choice) for choice in words["anyOf"])
        return msgspec.Raw if msgspec.Raw in choices else Union[choices]  # noqa: UP007 - made at run time

    def _visit_reference(self, reference: str) -> Any:
        name = reference.removeprefix("#/$defs/")
        if name not in self._visited:
            if name == reference or name not in self._definitions:
                raise _Inexpressible
            self._visited[name] = None  # a type that holds itself comes by here once more
            self._visited[name] = self.visit(self._definitions[name])
        if self._visited[name] is None:
            raise _Inexpressible
        return self._visited[name]

    def _visit_object(self, words: dict[str, Any]) -> Any:
        properties = words.pop("properties", {})
        required = words.pop("required", [])
        others = words.pop("additionalProperties", True)
        if words or not set(required) <= set(properties):
            raise _Inexpressible
        if not properties:
            return dict[str, self.visit(others)] if others is not False else _make_struct({}, (), is_closed=True)  # type: ignore[misc]  # made at run time
        if others not in (True, False, {}):
            raise _Inexpressible
        fields = {name: self.visit(schema) for name, schema in properties.items()}
        return _make_struct(fields, required, is_closed=others is False)

    def _visit_array(self, words: dict[str, Any]) -> Any:
        sizes = {name: words.pop(word) for word, name in _SIZES.items() if word in words}
        if "prefixItems" in words:
            items = words.pop("prefixItems")
            if words or sizes != dict.fromkeys(_SIZES.values(), len(items)):
                raise _Inexpressible
            return tuple[tuple(self.visit(item) for item in items)]  # type: ignore[misc]  # made at run time
        made: Any = list[self.visit(words.pop("items", True))]  # type: ignore[misc]  # made at run time
        if words:
            raise _Inexpressible
        return Annotated[made, msgspec.Meta(**sizes)] if sizes else made


def _make_struct(fields: dict[str, Any], required: list[str] | tuple[()], *, is_closed: bool) -> Any:
    named = {f"f{index}": name for index, name in enumerate(fields)}
    declared = [
        (field, fields[name]) if name in required else (field, fields[name], msgspec.UNSET)
        for field, name in named.items()
    ]
    return msgspec.defstruct("Shape", declared, rename=named, kw_only=True, forbid_unknown_fields=is_closed, gc=False)


def _make_literal(kind: str, words: dict[str, Any]) -> Any:
    choices = words.pop("enum", None) or [words.pop("const", None)]
    wanted = {"string": str, "integer": int}.get(kind)
    if words or wanted is None or not all(type(choice) is wanted for choice in choices):
        raise _Inexpressible
    return Literal[tuple(choices)]


def _make_scalar(kind: str, words: dict[str, Any]) -> Any:
    made: Any = {"string": str, "integer": int, "number": float, "boolean": bool, "null": None}.get(kind, ...)
    names = _LENGTHS if kind == "string" else _BOUNDS if kind in ("integer", "number") else {}
    if made is ... or not set(words) <= set(names):
        raise _Inexpressible
    return Annotated[made, msgspec.Meta(**{names[word]: bound for word, bound in words.items()})] if words else made
