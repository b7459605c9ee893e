"""What a return type becomes, whatever tool returns it: found out once for the types that many tools return."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from pydantic_core import SchemaValidator

from twofold.tools.introspection.identity import Identified, identify
from twofold.tools.introspection.json_types import describe_json_type
from twofold.tools.results.dump import Dumper, stand_in
from twofold.tools.results.output_schema import is_object, wrap
from twofold.tools.results.proof import Decode, compile_decoder
from twofold.tools.results.rewrite import rewrite


class Description:
    """What a type becomes.

    Attributes:
        validate: Validates a value of it.
        core: pydantic's core schema, as it is written by.
        dumper: Writes a value of it.
        hides_input: An author asked that values be left out of error messages.
        bare: Its JSON Schema, without a name of the tool's; nobody changes it.
        wrapped: The same of `{"result": value}`; None where the type is an object itself.
    """

    def __init__(
        self,
        *,
        validate: Callable[[Any], Any],
        core: Mapping[str, Any],
        dumper: Dumper,
        hides_input: bool,
        bare: dict[str, Any],
        wrapped: dict[str, Any] | None,
    ) -> None:
        self.validate = validate
        self.core = core
        self.dumper = dumper
        self.hides_input = hides_input
        self.bare = bare
        self.wrapped = wrapped

    @functools.cached_property
    def bare_decoder(self) -> Decode | None:
        """What proves that bytes conform to the bare schema."""
        return compile_decoder(self.bare)

    @functools.cached_property
    def wrapped_decoder(self) -> Decode | None:
        """What proves that bytes, put inside `{"result": …}`, conform to the wrapped schema."""
        return None if self.wrapped is None else compile_decoder(self.wrapped, is_wrapped=True)


def describe_type(annotation: Any) -> Description:
    """Describe a type, or remember it.

    Raises:
        Unreadable: It has no schema.
        InvalidSignature: Two of its fields have one name, or a class names a type that is not defined.
    """
    identified = identify(annotation)
    return _ask_pydantic(annotation) if identified is None else _describe(identified)


@functools.lru_cache(maxsize=512)
def _describe(identified: Identified[Any]) -> Description:
    described = describe_json_type(identified.thing)
    if described is None:
        return _ask_pydantic(identified.thing)
    rewritten = rewrite(described.core, stand=stand_in)
    return Description(
        validate=SchemaValidator(described.core).validate_python,
        core=rewritten.schema,
        dumper=Dumper.of(rewritten),
        hides_input=False,
        bare=described.schema,
        wrapped=None if is_object(described.schema, rewritten.schema) else wrap(described.schema),
    )


def _ask_pydantic(annotation: Any) -> Description:
    # half of a server's start, where all other tools take and return JSON's own types
    from twofold.tools.results.by_pydantic import read_by_pydantic  # noqa: PLC0415 - see above

    reading = read_by_pydantic(annotation)
    return Description(
        validate=reading.validate,
        core=reading.rewritten.schema,
        dumper=reading.dumper,
        hides_input=reading.rewritten.hides_input,
        bare=reading.bare,
        wrapped=reading.wrapped,
    )
