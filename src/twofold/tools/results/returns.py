"""Return annotation → output schema; value → the two faces, which conform to it.

```text
annotation          published            a value becomes
-> int, list, …     {"result": …}        validated → bytes → proof → text, one block an element
-> Model, dict      the object itself    the same
-> Image, blocks    nothing              content blocks
nothing, or opted   nothing              text
-> CallToolResult   nothing, or Model's  as the author made it, its structure judged
output_schema=      to the letter        bytes → proof → text
```
"""

import copy
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, Protocol, TypeAlias, Union, get_args, get_origin

import msgspec
from pydantic_core import ValidationError

from twofold.contract.plain import Path, cut
from twofold.errors import InvalidDefinition, InvalidSignature, ResultRefused
from twofold.protocol.messages import CallToolResult, Faces, Wrapping
from twofold.tools.checks.complaints import warn_author
from twofold.tools.introspection.json_types import copy_json
from twofold.tools.results.content import (
    CONTENT_TYPES,
    encode_content,
    holds_content,
    promises_content,
)
from twofold.tools.results.description import describe_type
from twofold.tools.results.dump import Dumper, dump_any, refuse_non_finite
from twofold.tools.results.output_schema import Unreadable, name_bare, name_wrapped, wrap_by_hand
from twofold.tools.results.own_result import render_result
from twofold.tools.results.proof import Proof, compile_decoder
from twofold.tools.results.refusal import refuse_value
from twofold.tools.results.text import Face, build_face

Text: TypeAlias = str | Callable[[Any], Any]

_NOT_DATA = (CallToolResult, *CONTENT_TYPES)
_NOT_DATA_EXACTLY = frozenset(_NOT_DATA)
"""Asked on every call: eight times faster than `isinstance`, which the refusal of a value asks again."""
_NO_SCHEMA_CODES = frozenset(("schema-for-unknown-type", "invalid-for-json-schema"))
"""pydantic's codes for "this type has no schema"; its other complaints are mistakes in the author's classes."""


class Renderer(Protocol):
    """Turns what a function returned into the two faces."""

    def render(self, value: Any) -> Faces:
        """Make the faces, or raise ResultRefused."""


class Returns(msgspec.Struct, frozen=True):
    """What a tool promises to return, and how a value becomes the two faces.

    Attributes:
        output_schema: As published where any root is allowed (2026-07-28); None for text only.
        object_schema: As published to earlier revisions: its root is an object.
        wrapping: When a value goes out inside `{"result": …}`.
        is_proven: `render` itself proves that the bytes conform; `check` then has nothing left to do.
    """

    output_schema: dict[str, Any] | None
    object_schema: dict[str, Any] | None
    wrapping: Wrapping
    is_proven: bool
    renderer: Renderer
    proof: Proof | None = None

    def render(self, value: Any) -> Faces:
        """Make the two faces of what the function returned.

        Args:
            value: The value; an async generator has been read into a list before.

        Raises:
            ResultRefused: The value does not fit what is published, or JSON cannot hold it.
            Exception: Whatever the author's own serialisers, properties or text function raise.
        """
        return self.renderer.render(value)

    def finish(self, value: Any) -> Faces:
        """Make the faces and prove all of them, however long it takes."""
        faces = self.renderer.render(value)
        self.check(faces)
        return faces

    def check(self, faces: Faces) -> None:
        """Prove what `render` could not prove on the way; some milliseconds a megabyte.

        Raises:
            ResultRefused: The bytes do not conform to the published schema.
        """
        if not self.is_proven and self.proof is not None and not faces.is_error and faces.structured is not None:
            self.proof.check(faces.structured)


def build_returns(
    annotation: Any,
    *,
    tool_name: str,
    function_name: str,
    structured_output: bool | None = None,
    wrap: bool = True,
    text: Text | None = None,
    output_schema: dict[str, Any] | None = None,
) -> Returns:
    """Read a return annotation.

    Args:
        annotation: The evaluated return annotation, or `inspect.Signature.empty`.
        tool_name: Names the schemas of what has no name of its own.
        function_name: Named in errors.
        structured_output: True insists on a schema, False does without one, None lets the annotation decide.
        wrap: False publishes a root that is no object bare to clients of 2026-07-28.
        text: The model's face: "pretty" (default), "compact", a template or a function of the value.
        output_schema: A JSON Schema by hand, published to the letter and enforced; the annotation then says nothing.

    Raises:
        InvalidSignature: The annotation, or the options beside it, cannot become a tool's result.
        InvalidDefinition: The schema or the template cannot be published.
    """
    for option, given, allowed in (
        ("structured_output", structured_output, (True, False, None)),
        ("wrap", wrap, (True, False)),
    ):
        if not any(given is each for each in allowed):
            words = " or ".join(map(str, allowed))
            raise InvalidDefinition(f"tool {tool_name!r}, {option}: expected {words}, got {cut(repr(given))}")
    declared = _Declared(
        tool_name=tool_name,
        function_name=function_name,
        insists=structured_output is True,
        opts_out=structured_output is False,
        wrap=wrap,
        text="pretty" if text is None else text,
    )
    if output_schema is not None:
        if declared.opts_out:
            raise InvalidSignature(f"Function {function_name}: structured_output=False contradicts output_schema=")
        return _return_by_hand(output_schema, declared)
    annotation, is_result = _strip_result(annotation)
    if is_result and declared.has_own_text:
        raise InvalidSignature(
            f"Function {function_name}: text= has no use beside CallToolResult, which carries its own content"
        )
    if annotation is inspect.Signature.empty or declared.opts_out:
        return _return_text(annotation, declared)
    if promises_content(annotation):
        return _return_content(annotation, declared)
    return _return_data(annotation, declared)


class _Declared(msgspec.Struct, frozen=True):
    """What the declaration says besides the annotation."""

    tool_name: str
    function_name: str
    insists: bool
    opts_out: bool
    wrap: bool
    text: Text

    @property
    def owner(self) -> str:
        return f"tool {self.tool_name!r}"

    @property
    def has_own_text(self) -> bool:
        return self.text not in ("pretty", "compact")

    @property
    def is_indented(self) -> bool:
        return self.text != "compact"

    def refuse(self, annotation: Any) -> InvalidSignature:
        shown = "<none>" if annotation is inspect.Signature.empty else str(annotation)
        return InvalidSignature(
            f"Function {self.function_name}: return type {shown} is not serializable for structured output"
        )


def _strip_result(annotation: Any) -> tuple[Any, bool]:
    """Take `CallToolResult` out of an annotation: what is left tells the schema, if anything is left.

    `Annotated[CallToolResult, Model]` leaves `Model`; `Model | CallToolResult` too; by itself it leaves nothing.
    """
    origin = get_origin(annotation)
    if origin is Annotated and _is_result(get_args(annotation)[0]):
        promised = get_args(annotation)[1]
        is_type = promised is None or isinstance(promised, type) or get_origin(promised) is not None
        return (promised if is_type else inspect.Signature.empty), True
    if origin in (Union, types.UnionType):
        rest = tuple(argument for argument in get_args(annotation) if not _is_result(argument))
        if len(rest) < len(get_args(annotation)):
            return Union[rest], False  # noqa: UP007 - made at run time
    return (inspect.Signature.empty, True) if _is_result(annotation) else (annotation, False)


def _is_result(annotation: Any) -> bool:
    return isinstance(annotation, type) and get_origin(annotation) is None and issubclass(annotation, CallToolResult)


# --- text only ---------------------------------------------------------------------------------------


def _return_text(annotation: Any, declared: _Declared) -> Returns:
    if declared.insists:
        raise declared.refuse(annotation)
    renderer = _TextRenderer(
        face=build_face(declared.text, schema=None, owner=declared.owner),
        has_text_function=callable(declared.text),
        drops_structure=declared.opts_out,
        is_indented=declared.is_indented,
    )
    return Returns(None, None, Wrapping.NEVER, is_proven=True, renderer=renderer)


class _TextRenderer(msgspec.Struct, frozen=True):
    """No schema: text of whatever came, or the content blocks that came."""

    face: Face
    has_text_function: bool
    drops_structure: bool
    is_indented: bool

    def render(self, value: Any) -> Faces:
        value = _read_iterator(value)
        if isinstance(value, CallToolResult):
            faces = render_result(value, is_indented=self.is_indented)
            return Faces(faces.content, is_error=faces.is_error, meta=faces.meta) if self.drops_structure else faces
        if not self.has_text_function and holds_content(value):
            return Faces(encode_content(value, is_indented=self.is_indented))
        # a function given as text= takes the value as it is, even one that JSON cannot hold
        raw = b"null" if self.has_text_function else dump_any(value, is_text=True)
        return Faces(self.face(raw, value))


def _read_iterator(value: Any) -> Any:
    """Read a generator once: the faces are made from the same values, and its exceptions are its author's."""
    return list(value) if hasattr(value, "__next__") else value


# --- content -----------------------------------------------------------------------------------------


def _return_content(annotation: Any, declared: _Declared) -> Returns:
    if declared.insists:
        raise InvalidSignature(
            f"Function {declared.function_name}: return type {annotation} is content, not data, and has no schema; "
            "leave structured_output=True out, or return CallToolResult with both"
        )
    if declared.has_own_text:
        raise InvalidSignature(
            f"Function {declared.function_name}: text= has no use beside return type {annotation}, which is content"
        )
    return Returns(None, None, Wrapping.NEVER, is_proven=True, renderer=_ContentRenderer(declared.is_indented))


class _ContentRenderer(msgspec.Struct, frozen=True):
    """Blocks in order, other values among them as text."""

    is_indented: bool

    def render(self, value: Any) -> Faces:
        value = _read_iterator(value)
        if isinstance(value, CallToolResult):
            return render_result(value, is_indented=self.is_indented)
        return Faces(encode_content(value, is_indented=self.is_indented))


# --- data --------------------------------------------------------------------------------------------


def _return_data(annotation: Any, declared: _Declared) -> Returns:
    try:
        described = describe_type(annotation)
    except Unreadable as error:
        return _opt_out(annotation, error.reason, declared)
    bare = name_bare(copy_json(described.bare), tool_name=declared.tool_name)
    wrapped = name_wrapped(copy_json(described.wrapped), tool_name=declared.tool_name) if described.wrapped else bare
    wrapping = Wrapping.NEVER if wrapped is bare else Wrapping.ALWAYS if declared.wrap else Wrapping.EARLIER
    is_wrapped = wrapping is Wrapping.ALWAYS
    published = wrapped if is_wrapped else bare
    proof = Proof(
        published,
        make_decode=lambda: described.wrapped_decoder if is_wrapped else described.bare_decoder,
        is_wrapped=is_wrapped,
        is_generated=True,
        what=f"{declared.owner}, output schema",
    )
    renderer = _DataRenderer(
        validate=described.validate,
        core=described.core,
        dumper=described.dumper,
        proof=proof,
        is_proven=proof.is_immediate,
        face=build_face(declared.text, schema=bare, owner=declared.owner),
        wrapping=wrapping,
        place=proof.place,
        title=str(wrapped.get("title", declared.tool_name)),
        model=str(described.bare.get("title", "the result")),
        hides_input=described.hides_input,
        reads_iterators=bare.get("type") in ("array", None),
        is_indented=declared.is_indented,
    )
    return Returns(published, wrapped, wrapping, is_proven=proof.is_immediate, renderer=renderer, proof=proof)


def _opt_out(annotation: Any, error: Exception, declared: _Declared) -> Returns:
    """Do without a schema where the type has none, and say so."""
    inside = _find_content(annotation, set())
    if inside is not None:
        raise InvalidSignature(
            f"Function {declared.function_name}: return type {annotation} holds {inside.__name__} inside data; "
            "content stands by itself or in a list, and beside data in CallToolResult(content=…, structured_content=…)"
        ) from error
    if getattr(error, "code", None) not in _NO_SCHEMA_CODES:
        raise InvalidSignature(
            f"Function {declared.function_name}: return type {annotation} cannot be read: {_first_line(error)}"
        ) from error
    if declared.insists:
        raise declared.refuse(annotation) from error
    if callable(declared.text):  # the author renders the text and knows there is nothing else
        return _return_text(annotation, declared)
    warn_author(
        f"Function {declared.function_name}: return type {annotation} has no output schema, so the tool is text only "
        f"({_first_line(error)}); annotate the attributes on the class body (`name: str`), or give the class "
        "a __str__ and pass structured_output=False"
    )
    return _return_text(annotation, declared)


def _first_line(error: Exception) -> str:
    return str(error).partition(". ")[0].partition("\n")[0]


def _find_content(annotation: Any, seen: set[int]) -> type | None:
    """Find a content type anywhere inside an annotation, the fields of classes included."""
    if id(annotation) in seen:
        return None
    seen.add(id(annotation))
    is_class = isinstance(annotation, type) and get_origin(annotation) is None
    if is_class and issubclass(annotation, CONTENT_TYPES):
        return typing.cast("type", annotation)
    inside = list(get_args(annotation))
    if is_class:
        inside += [hint for cls in annotation.__mro__ for hint in inspect.get_annotations(cls).values()]
    return next((found for item in inside if (found := _find_content(item, seen)) is not None), None)


class _DataRenderer(msgspec.Struct, frozen=True):
    """Validated, written, proven, told."""

    validate: Callable[[Any], Any]
    core: Mapping[str, Any]
    dumper: Dumper
    proof: Proof
    is_proven: bool
    face: Face
    wrapping: Wrapping
    place: Path
    title: str
    model: str
    hides_input: bool
    reads_iterators: bool
    is_indented: bool

    def render(self, value: Any) -> Faces:
        if type(value) in _NOT_DATA_EXACTLY:
            return self._render_own(value)
        if self.reads_iterators:
            value = _read_iterator(value)
        try:
            valid = self.validate(value)
            raw = self.dumper.dump(valid, at=self.place)
        except ValidationError as error:
            if isinstance(value, _NOT_DATA):  # a class of the author's derived from one
                return self._render_own(value)
            raise self._refuse(value, error) from None
        except ResultRefused:
            if isinstance(value, _NOT_DATA):  # a class of the author's derived from one
                return self._render_own(value)
            raise
        if self.is_proven:
            self.proof.check(raw)
        else:
            refuse_non_finite(raw, at=self.place)  # the rest of the check may be made off the event loop
        return Faces(self.face(raw, valid), raw, self.wrapping)

    def _dump(self, value: Any) -> tuple[Any, bytes]:
        try:
            valid = self.validate(value)
        except ValidationError as error:
            raise self._refuse(value, error) from None
        return valid, self.dumper.dump(valid, at=self.place)

    def _refuse(self, value: Any, error: ValidationError) -> ResultRefused:
        return refuse_value(
            error, value=value, title=self.model, at=self.place, hides_input=self.hides_input, core=self.core
        )

    def _render_own(self, value: Any) -> Faces:
        if isinstance(value, CallToolResult):
            return render_result(value, is_indented=self.is_indented, wrapping=self.wrapping, settle=self._settle)
        raise ResultRefused(
            f"the tool promises {self.title} and returned {type(value).__name__}, which is content; annotate the "
            "function with it, or return CallToolResult(content=…, structured_content=…)"
        )

    def _settle(self, raw: bytes, value: Any) -> bytes:
        """Give the structure of an author's own result as it may leave: verbatim where it conforms.

        Else it may be inside `{"result": …}`, as the published schema shows it, or by Python's names.
        """
        if _conforms(self.proof, raw):
            return raw
        if self.wrapping is not Wrapping.NEVER and isinstance(value, dict) and set(value) == {"result"}:
            value = value["result"]
            raw = dump_any(value, at=self.place)
            if _conforms(self.proof, raw):
                return raw
        raw = self._dump(value)[1]
        self.proof.check(raw)
        return raw


def _conforms(proof: Proof, raw: bytes) -> bool:
    try:
        proof.check(raw)
    except ResultRefused:
        return False
    return True


# --- a schema by hand --------------------------------------------------------------------------------


def _return_by_hand(schema: dict[str, Any], declared: _Declared) -> Returns:
    if not isinstance(schema, dict):  # `True` is a schema too, but none that a client could learn from
        raise InvalidDefinition(f"{declared.owner}, output schema: expected an object, got {cut(repr(schema))}")
    schema = copy.deepcopy(schema)  # what is published stays what is enforced, whatever the author does with his
    has_object_root = schema.get("type") == "object"
    proof = Proof(
        schema,
        make_decode=partial(compile_decoder, schema),
        is_wrapped=False,
        is_generated=False,
        what=f"{declared.owner}, output schema",
    )
    renderer = _HandRenderer(
        proof=proof,
        face=build_face(declared.text, schema=schema if has_object_root else None, owner=declared.owner),
        wrapping=Wrapping.NEVER if has_object_root else Wrapping.EARLIER,
        is_indented=declared.is_indented,
    )
    return Returns(
        schema,
        schema if has_object_root else wrap_by_hand(schema, tool_name=declared.tool_name),
        renderer.wrapping,
        is_proven=False,
        renderer=renderer,
        proof=proof,
    )


class _HandRenderer(msgspec.Struct, frozen=True):
    """Written as it came; the schema alone judges."""

    proof: Proof
    face: Face
    wrapping: Wrapping
    is_indented: bool

    def render(self, value: Any) -> Faces:
        if isinstance(value, CallToolResult):
            return render_result(
                value, is_indented=self.is_indented, wrapping=self.wrapping, settle=lambda raw, _value: raw
            )
        value = _read_iterator(value)
        raw = dump_any(value)
        return Faces(self.face(raw, value), raw, self.wrapping)
