"""The bytes of a call bound to a function's arguments; all that can be prepared is prepared once."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import msgspec
from pydantic_core import ValidationError

from twofold.protocol.structs import Json
from twofold.tools.arguments.growth import Growth
from twofold.tools.arguments.problems import (
    MAX_FOUND,
    ArgumentProblem,
    find_argument,
    find_schema_problems,
    find_value_problems,
    name_depth,
    refuse,
    sort_problems,
)
from twofold.tools.arguments.reading import (
    find_infinities,
    may_hold_infinity,
    read_arguments,
    read_string,
    replace_arguments,
)

if TYPE_CHECKING:
    from twofold.contract.schema import CompiledSchema

BoundArguments: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]
Attempt: TypeAlias = Callable[[bytes], dict[str, Any] | list[ArgumentProblem]]
"""Binds the arguments by name, or says what is wrong with them."""

LARGE_BYTES = 64 * 1024
"""From here on a list may hold so many misfits that listing them takes longer than a server may stand still."""

_MAX_ERRORS = 2_000
"""Of pydantic's errors so many are read. An argument with more is no string, so that nothing would mend the call."""


class Pieces(msgspec.Struct, frozen=True):
    """What a signature's arguments are bound with.

    Attributes:
        validate: Takes JSON, gives what the function takes by name.
        asks_schema: The validator takes more than the schema allows, so that both are asked.
        looks_for_infinity: Numbers may reach the function that the validator does not look at.
        growths: The arguments whose levels multiply the validator's work; nearly always none.
    """

    validate: Callable[[bytes], dict[str, Any]]
    asks_schema: bool
    looks_for_infinity: bool
    growths: Mapping[str, Growth]


class Maker(Protocol):
    """Makes what a binder binds with; the same each time."""

    def make_pieces(self) -> Pieces:
        """Make what every call needs."""
        ...

    def make_hasty_validate(self) -> Callable[[bytes], dict[str, Any]]:
        """Make what large calls need: the same as `Pieces.validate`, but it stops at the first misfit of a list."""
        ...

    def compile_schema(self) -> "CompiledSchema":
        """Compile what is published; what the author reads leniently is left open in it."""
        ...


class SignatureBinder:
    """Binds to a function whose input schema comes from its signature.

    Making what it binds with takes 0.15 ms, half of a registration, and most tools of a large server are not called: so
    it is made with the first call that needs it, unless making it may fail. Two threads that come first at once make it
    twice, which does no harm.

    Args:
        tool_name: For messages.
        maker: Makes what it binds with.
        names: What the arguments are called in JSON.
        positional: The parameters that must go by position, each with its default.
        mirrored: The parameters that HTTP clients repeat in a header.
        is_certain: Making it surely succeeds, so that it can wait.

    Raises:
        Exception: What `maker` raises, unless `is_certain`.
    """

    def __init__(
        self,
        tool_name: str,
        *,
        maker: Maker,
        names: Sequence[str],
        positional: Sequence[tuple[str, Any]],
        mirrored: frozenset[str],
        is_certain: bool,
    ) -> None:
        self._tool_name = tool_name
        self._mirrored = mirrored
        self._maker = maker
        self._names = names
        self._positional = positional
        self._pieces: Pieces | None = None
        self._validate: Callable[[bytes], dict[str, Any]]
        self._asks_validator_alone = False  # not before it is there
        if not is_certain:
            self._take_pieces()
            _ = self._validate_hastily, self._schema

    def _take_pieces(self) -> Pieces:
        pieces = self._pieces
        if pieces is None:
            pieces = self._maker.make_pieces()
            self._pieces, self._validate = pieces, pieces.validate
            self._asks_validator_alone = not (pieces.asks_schema or pieces.looks_for_infinity or pieces.growths)
        return pieces

    @functools.cached_property
    def _validate_hastily(self) -> Callable[[bytes], dict[str, Any]]:
        return self._maker.make_hasty_validate()

    @functools.cached_property
    def _schema(self) -> "CompiledSchema":
        return self._maker.compile_schema()

    def bind(self, raw: bytes) -> BoundArguments:
        """Bind the JSON text of the arguments' object.

        Args:
            raw: The text.

        Returns:
            Positional arguments and keyword arguments, fresh for this call.

        Raises:
            ArgumentsRefused: They do not fit; every problem is named.
            ParseError: The bytes are no JSON.
            InvalidParams: The JSON is no object.
        """
        try:
            is_simple = self._asks_validator_alone and len(raw) <= LARGE_BYTES
            named: dict[str, Any] = self._validate(raw) if is_simple else self._bind_carefully(raw)
        except ValidationError:
            named = self._bind_carefully(raw)
        if not self._positional:
            return (), named
        return tuple(named.pop(name, default) for name, default in self._positional), named

    def _bind_carefully(self, raw: bytes) -> dict[str, Any]:
        named = self._attempt(raw)
        if isinstance(named, list):
            return bind_reading_strings(
                raw, named, attempt=self._attempt, mirrored=self._mirrored, tool_name=self._tool_name
            )
        return named

    def _attempt(self, raw: bytes) -> dict[str, Any] | list[ArgumentProblem]:
        pieces = self._take_pieces()
        if pieces.looks_for_infinity and (b"NaN" in raw or b"Infinity" in raw):  # which the validator takes under Any
            read_arguments(raw, tool_name=self._tool_name)
        problems = self._find_excess(raw, pieces.growths) if pieces.growths else []
        if problems:
            return problems
        try:
            is_large = len(raw) > LARGE_BYTES
            named: dict[str, Any] = self._validate_hastily(raw) if is_large else pieces.validate(raw)
        except ValidationError as error:
            return self._find_problems(raw, error)
        if pieces.looks_for_infinity and may_hold_infinity(raw):
            infinities = find_infinities(read_arguments(raw, tool_name=self._tool_name))
            if infinities:
                return infinities
        if pieces.asks_schema:
            arguments = read_arguments(raw, tool_name=self._tool_name)
            if not self._schema.is_valid(arguments):
                return self._find_schema_problems(raw, arguments)
        return named

    def _find_excess(self, raw: bytes, growths: Mapping[str, Growth]) -> list[ArgumentProblem]:
        """Name what the validator had better not see: values too deep for it, and costly ones that do not fit.

        The schema's check remembers what it tried where the validator does not, so that it tells a misfit at once.
        """
        arguments = read_arguments(raw, tool_name=self._tool_name)
        problems = []
        is_light = True
        for name, value in arguments.items():
            for growth in self._growths_of(name, growths):
                load = growth.weigh(value)
                is_light = is_light and load.is_light
                if load.limit is not None:
                    problems.append(name_depth(name, load.depth, limit=load.limit))
                    break
        if problems or is_light or self._schema.is_valid(arguments):
            return problems
        return self._find_schema_problems(raw, arguments)

    def _growths_of(self, name: str, growths: Mapping[str, Growth]) -> Iterable[Growth]:
        if name in growths:
            return [growths[name]]
        return () if name in self._names else growths.values()  # it may be another alias of any of them

    def _find_problems(self, raw: bytes, error: ValidationError) -> list[ArgumentProblem]:
        """Name what the schema refuses, and of the other arguments what the validator refuses."""
        arguments = read_arguments(raw, tool_name=self._tool_name)
        problems = self._find_schema_problems(raw, arguments)
        named = {problem.argument for problem in problems}
        if len(problems) >= MAX_FOUND:
            return problems
        errors = error.errors(include_url=False)[:_MAX_ERRORS]
        problems += find_value_problems([one for one in errors if find_argument(one) not in named], arguments)
        return sort_problems(problems, self._names)

    def _find_schema_problems(self, raw: bytes, arguments: dict[str, Any]) -> list[ArgumentProblem]:
        return find_schema_problems(self._schema, arguments, self._names, is_finite=not may_hold_infinity(raw))


class SchemaBinder:
    """Binds to a function whose input schema is written by hand: it gets the arguments as they are.

    Args:
        tool_name: For messages.
        schema: What is published, compiled.
        names: The properties the schema lists.
        place: Puts the arguments' object where the function wants it.
    """

    def __init__(
        self,
        tool_name: str,
        *,
        schema: "CompiledSchema",
        names: Sequence[str],
        place: Callable[[dict[str, Json]], BoundArguments],
        mirrored: frozenset[str],
    ) -> None:
        self._tool_name = tool_name
        self._mirrored = mirrored
        self._schema = schema
        self._names = names
        self._place = place

    def bind(self, raw: bytes) -> BoundArguments:
        """Bind the JSON text of the arguments' object; see `SignatureBinder.bind`."""
        arguments = self._attempt(raw)
        if isinstance(arguments, list):
            arguments = bind_reading_strings(
                raw, arguments, attempt=self._attempt, mirrored=self._mirrored, tool_name=self._tool_name
            )
        return self._place(arguments)

    def _attempt(self, raw: bytes) -> dict[str, Any] | list[ArgumentProblem]:
        arguments = read_arguments(raw, tool_name=self._tool_name)
        infinities = find_infinities(arguments) if may_hold_infinity(raw) else []
        if infinities:
            return infinities
        if self._schema.is_valid(arguments):
            return arguments
        return find_schema_problems(self._schema, arguments, self._names, is_finite=True)


def bind_reading_strings(
    raw: bytes, problems: list[ArgumentProblem], *, attempt: Attempt, mirrored: frozenset[str], tool_name: str
) -> dict[str, Any]:
    """Bind once more, with the JSON inside strings read; hosts send `"[1, 2]"` for `[1, 2]`.

    Only arguments that do not fit as they came are read so, each as a whole and once: what stands deeper,
    or is text inside the text, stays text.

    Args:
        raw: The arguments as they came.
        problems: What is wrong with them.
        attempt: Binds, or says what is wrong.
        mirrored: Parameters that stand in a header too, where others may have decided by them: what the tool gets is
            what was compared, never a text inside it.
        tool_name: For messages.

    Raises:
        ArgumentsRefused: It does not help; named is what is wrong with the arguments as they came.
    """
    arguments = read_arguments(raw, tool_name=tool_name)
    misfits = {problem.argument for problem in problems}
    texts: dict[str, bytes] = {}
    for name, value in arguments.items():
        if name not in misfits or name in mirrored:
            continue
        text = read_string(value) if isinstance(value, str) else None
        if text is not None:
            texts[name] = text
    if texts:
        outcome = attempt(replace_arguments(raw, texts))
        if isinstance(outcome, dict):
            return outcome
        remaining = {problem.argument for problem in outcome}
        problems = [problem for problem in problems if problem.argument in remaining] or problems
    raise refuse(tool_name, problems)
