"""A schema and the documents it refers to, put together in one that refers to nothing outside. Nothing is fetched here.

Source: JSON Schema 2020-12, core, section 9.3 "Compound Documents": each document keeps its identifier and stands
among the definitions of the schema that needs it.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from twofold.contract.dialect import Dialect, read_dialect
from twofold.contract.document import REFERENCES, Document, Schema, Subschema
from twofold.contract.plain import Path, cut, describe
from twofold.contract.schema import CompiledSchema
from twofold.errors import InvalidDefinition
from twofold.protocol.structs import Json


class Leaving(msgspec.Struct, frozen=True):
    """A reference that leads out of its document.

    Attributes:
        path: The subschema it stands in.
        keyword: As which keyword.
        uri: The document it leads to, resolved by the nearest identifier; relative where there is none.
        fragment: What it names there; empty for the whole.
    """

    path: Path
    keyword: str
    uri: str
    fragment: str


class OpenSchema(msgspec.Struct, frozen=True):
    """A schema in which nothing is wrong but that it may refer to other documents. Made by `open_schema`.

    Attributes:
        schema: Itself; of a fetched document with its identifier written out.
        url: Where it was found; empty for the schema that everything begins with.
        uri: What it calls itself; its URL where it does not.
        dialect: What it is written in.
        resources: Identifiers that references can lead to: its own, and those of schemas embedded in it.
        leaving: The references that lead out.
    """

    schema: dict[str, Any]
    url: str
    uri: str
    dialect: Dialect
    resources: frozenset[str]
    leaving: tuple[Leaving, ...]

    @property
    def outside(self) -> tuple[str, ...]:
        """The documents it refers to, each once, in alphabetical order."""
        return tuple(sorted({each.uri for each in self.leaving}))


def open_schema(schema: Json, *, what: str, url: str = "", referrer: OpenSchema | None = None) -> OpenSchema:
    """Read a schema that may refer to other documents, and check the rest of it.

    Args:
        schema: Any JSON value, as a decoder gives it.
        what: What it is, to open messages with.
        url: Of a fetched document, where it was found: its references are relative to this, unless it names itself.
        referrer: Of a fetched document, the schema that everything begins with. Its dialect goes for a document
            that declares none.

    Raises:
        InvalidDefinition: It is no schema, or not one that could be judged by if all it refers to were there; or its
            dialect is another than the referrer's.
    """
    if not isinstance(schema, dict | bool):
        raise InvalidDefinition(f"{what}: a JSON Schema is an object or a boolean, got {describe(schema)}")
    dialect = _choose_dialect(schema, referrer, what=what)
    whole = _restate(schema, dialect)
    key = dialect.id_keyword
    if referrer is not None:
        whole[key] = _own_uri(whole, key, url, what=what)
    document = _OpenDocument(whole, what=what, dialect=dialect)
    opened = OpenSchema(
        schema=whole,
        url=url,
        uri=whole[key] if referrer is not None else "",
        dialect=dialect,
        resources=document.identifiers - {""},
        leaving=tuple(dict.fromkeys(document.leaving)),
    )
    CompiledSchema.compile(_leave_out_outside(opened, referrer), what=what)
    return opened


def bundle_schemas(root: OpenSchema, documents: Sequence[OpenSchema]) -> dict[str, Any]:
    """Put a schema and the documents it refers to, directly or not, into one.

    Args:
        root: The schema. It keeps its own paths; only its definitions grow.
        documents: Opened with `root` as referrer; no identifier is in two of them.

    Returns:
        A schema that says the same, complete if the documents are. It still has to be compiled.
    """
    renamed = {each.url: each.uri for each in documents if each.url != each.uri}
    whole = _rename(root, renamed)
    place = "$defs" if root.dialect.name in ("2020-12", "2019-09") else "definitions"
    definitions = whole[place] = dict(whole.get(place) or {})
    for each in documents:
        name = each.url
        while name in definitions:
            name += "_"
        definitions[name] = _rename(each, renamed)
    return whole


class _OpenDocument(Document):
    """A schema taken apart, in which a reference that leads out of it is noted and no fault."""

    def __init__(self, schema: Schema, *, what: str, dialect: Dialect) -> None:
        self.leaving: list[Leaving] = []
        super().__init__(schema, what=what, dialect=dialect)

    @property
    def identifiers(self) -> frozenset[str]:
        return frozenset(self._resources)

    def _target(self, node: Subschema, reference: str) -> Subschema | None:
        try:
            return super()._target(node, reference)
        except InvalidDefinition:
            uri, _, fragment = reference.partition("#")
            uri = self._absolute(node.uri, uri, node)
            if reference.startswith("#") or uri in self._resources:
                raise  # it leads nowhere inside
        schema = node.schema if isinstance(node.schema, dict) else {}
        self.leaving += [Leaving(node.path, key, uri, fragment) for key in REFERENCES if schema.get(key) == reference]
        return None


def _choose_dialect(schema: Schema, referrer: OpenSchema | None, *, what: str) -> Dialect:
    if referrer is None:
        return read_dialect(schema, what=what)
    if isinstance(schema, bool) or "$schema" not in schema:
        return referrer.dialect
    dialect = read_dialect(schema, what=what)
    if dialect != referrer.dialect:
        raise InvalidDefinition(
            f"{what}: it is written in {dialect.name}, and what refers to it in {referrer.dialect.name}; "
            "documents of two dialects are not judged as one"
        )
    return dialect


def _restate(schema: Schema, dialect: Dialect) -> dict[str, Any]:
    """Restate a schema so that definitions and an identifier can be added to it; the original stays as it is."""
    if isinstance(schema, bool):
        return {} if schema else {"not": {}}
    if not (dialect.ref_stands_alone and isinstance(schema.get("$ref"), str)):
        return dict(schema)
    # up to draft-07 `$ref` makes what stands beside it void, identifier included; definitions are found all the same
    kept: dict[str, Any] = {key: schema[key] for key in ("$schema", "definitions", "$defs") if key in schema}
    return {**kept, "allOf": [{"$ref": schema["$ref"]}]}


def _own_uri(schema: dict[str, Any], key: str, url: str, *, what: str) -> str:
    """Say what a fetched document is called: what it says itself, else where it was found."""
    from urllib.parse import urljoin  # noqa: PLC0415 - 3 ms of start-up that most clients never need

    name = schema.get(key)
    if not isinstance(name, str) or name.startswith("#"):
        return url
    try:
        return urljoin(url, name.partition("#")[0])
    except ValueError as error:
        raise InvalidDefinition(f"{what}: {cut(name)!r} is no identifier ({error})") from None


def _leave_out_outside(opened: OpenSchema, referrer: OpenSchema | None) -> dict[str, Any]:
    """Copy a schema without the references that leave it, and with the dialect it is read in."""
    whole = _copy(opened.schema)
    for each in opened.leaving:
        node = _step_to(whole, each.path)
        node.pop(each.keyword, None)
        if opened.dialect.ref_stands_alone:
            node.clear()  # what was void beside it stays so
    if referrer is not None and "$schema" in referrer.schema:
        whole["$schema"] = referrer.schema["$schema"]
    return whole


def _rename(opened: OpenSchema, renamed: dict[str, str]) -> dict[str, Any]:
    """Copy a schema, with references to documents that call themselves otherwise led to that name."""
    whole = _copy(opened.schema)
    for each in opened.leaving:
        if each.uri in renamed:
            fragment = f"#{each.fragment}" if each.fragment else ""
            _step_to(whole, each.path)[each.keyword] = renamed[each.uri] + fragment
    return whole


def _step_to(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def _copy(schema: dict[str, Any]) -> dict[str, Any]:
    """Copy JSON of any depth."""
    whole = dict(schema)
    stack: list[dict[Any, Any] | list[Any]] = [whole]
    while stack:
        container = stack.pop()
        members = list(container.items()) if isinstance(container, dict) else list(enumerate(container))
        for step, member in members:
            if isinstance(member, dict | list):
                copied = member.copy()
                container[step] = copied
                stack.append(copied)
    return whole
