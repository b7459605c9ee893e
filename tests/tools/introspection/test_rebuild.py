"""Types pydantic refuses become types it takes, with the same schema and values."""

import collections.abc
import dataclasses
import datetime
import decimal
import pathlib
import typing
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    NewType,
    NotRequired,
    Optional,
    Protocol,
    Required,
    TypedDict,
    TypeVar,
)

import msgspec
import pytest
import typing_extensions
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from typing_extensions import TypeAliasType

from twofold.errors import InvalidSignature
from twofold.protocol.content import TextContent
from twofold.tools.introspection.rebuild import (
    element_of_stream,
    is_async_stream,
    is_plain_class,
    rebuild,
    value_of_alias,
)

T = TypeVar("T")


class Weather(TypedDict):
    """A reading."""

    temperature: float
    conditions: NotRequired[str]


class Partial(TypedDict, total=False):
    a: Required[int]
    b: Annotated[str, Field(description="the b")]


class Inherited(Partial):
    c: bool


class Node(TypedDict):
    value: int
    children: "list[Node]"


class Left(TypedDict):
    right: "Right | None"


class Right(TypedDict):
    left: "Left | None"


class Closed(TypedDict):
    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012
    a: int


class Page(TypedDict, Generic[T]):
    items: list[T]


class Station:
    """A weather station."""

    name: str
    online: bool = True
    kinds: ClassVar[int] = 3
    _secret: int = 0

    def __init__(self, name: str) -> None:
        self.name = name


class Harbour(Station):
    berths: int
    nearest: "Station | None" = None

    def __init__(self, name: str, berths: int) -> None:
        super().__init__(name)
        self.berths = berths


class Tree:
    name: str
    branches: "list[Tree]"

    def __init__(self, name: str, *branches: "Tree") -> None:
        self.name = name
        self.branches = list(branches)


class Awkward:
    schema: str
    copy: int = 1
    model_config: str = "c"

    def __init__(self) -> None:
        self.schema = "s"


@dataclass(frozen=True)
class Reading:
    weather: Weather
    tags: list[str] = field(default_factory=list)
    next: "Reading | None" = None


@dataclass(slots=True)
class Slotted:
    weather: Weather
    note: str = "n"


@dataclass
class Box(Generic[T]):
    item: T


def schema_of(annotation: Any) -> dict[str, Any]:
    return TypeAdapter(rebuild(annotation)).json_schema(mode="serialization")


WEATHER = {
    "title": "Weather",
    "description": "A reading.",
    "type": "object",
    "properties": {
        "temperature": {"title": "Temperature", "type": "number"},
        "conditions": {"title": "Conditions", "type": "string"},
    },
    "required": ["temperature"],
}


@pytest.mark.parametrize(
    "annotation",
    [
        int,
        None,
        Any,
        list[int],
        dict[str, list[int | None]],
        Literal["a", 1],
        collections.abc.Callable[[int], str],
        Annotated[int, Field(ge=0)],
        tuple[int, ...],
        tuple[()],
        typing_extensions.TypedDict("Fine", {"a": int}),
        dataclasses.make_dataclass("Plainly", [("a", int)]),
        Box[int],
        TextContent,
        list[TextContent],
        {"not": "a type"},
        5,
    ],
)
def test_what_pydantic_takes_stays_the_same_object(annotation: Any) -> None:
    """`rebuild` gives back the very same object when nothing needs a change."""
    assert rebuild(annotation) is annotation
    assert rebuild(annotation, for_parameter=True) is annotation


def test_standard_library_typed_dict_is_published() -> None:
    """`typing.TypedDict` works on every supported Python: contract row A4."""
    assert schema_of(Weather) == WEATHER
    made = rebuild(Weather)
    assert (made.__name__, made.__module__, made.__doc__) == ("Weather", __name__, "A reading.")


def test_required_and_optional_keys_are_kept() -> None:
    """`total=False`, `Required`, `NotRequired` and inheritance say which keys must be there: PEP 655."""
    schema = schema_of(Inherited)
    assert sorted(schema["required"]) == ["a", "c"]
    assert schema["properties"]["b"] == {"title": "B", "type": "string", "description": "the b"}
    assert schema_of(Partial)["required"] == ["a"]


@pytest.mark.parametrize("for_parameter", [False, True])
@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (list[Weather], [{"temperature": 1.0}]),
        (Weather | None, {"temperature": 1.0}),
        (Optional[Weather], None),  # noqa: UP045
        (Annotated[Weather, "note"], {"temperature": 1.0}),
        (dict[str, tuple[Weather, ...]], {"a": ({"temperature": 1.0},)}),
        (NewType("Reported", Weather), {"temperature": 1.0}),
        (TypeAliasType("Alias", list[Weather]), [{"temperature": 1.0}]),
        (Page[int], {"items": [1]}),
        (Page[Weather], {"items": [{"temperature": 1.0}]}),
        (typing.Sequence[Weather], [{"temperature": 1.0}]),
        (Node, {"value": 1, "children": [{"value": 2, "children": []}]}),
        (Left, {"right": {"left": {"right": None}}}),
    ],
)
def test_typed_dict_is_rebuilt_wherever_it_stands(annotation: Any, value: Any, *, for_parameter: bool) -> None:
    """A TypedDict is rebuilt through unions, containers, generics, aliases, and in a circle."""
    assert TypeAdapter(rebuild(annotation, for_parameter=for_parameter)).validate_python(value) == value


def test_self_reference_stays_a_reference() -> None:
    """A TypedDict that names itself is published once, under `$defs`."""
    schema = schema_of(Node)
    assert schema["$ref"] == "#/$defs/Node"
    assert schema["$defs"]["Node"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}


def test_config_of_a_typed_dict_is_kept() -> None:
    """`__pydantic_config__` on the author's TypedDict still holds."""
    assert schema_of(Closed)["additionalProperties"] is False


def test_typed_dict_local_to_a_function_can_name_itself() -> None:
    """Names are found in the enclosing function while it runs."""

    class Other(TypedDict):
        a: int

    class Local(TypedDict):
        inner: "list[Local]"
        other: "Other"

    value = {"inner": [], "other": {"a": 1}}
    assert TypeAdapter(rebuild(Local)).validate_python(value) == value


def test_undefined_name_in_a_class_is_named() -> None:
    """An annotation that cannot be resolved is refused, with class and name."""

    class Broken(TypedDict):
        a: "Missing"  # noqa: F821

    with pytest.raises(InvalidSignature, match=r"class '.*Broken'.*names 'Missing'"):
        rebuild(Broken)


@dataclass
class Unfinished:
    a: "Missing"  # noqa: F821


class UnfinishedModel(BaseModel):
    a: "list[Missing]"  # noqa: F821


class UnfinishedInside(BaseModel):
    a: Unfinished


@pytest.mark.parametrize(
    ("annotation", "name"),
    [(Unfinished, "Unfinished"), (list[UnfinishedModel], "UnfinishedModel"), (UnfinishedInside | None, "Unfinished")],
)
def test_undefined_name_in_the_class_of_a_parameter_is_named(annotation: Any, name: str) -> None:
    """Readers learn the class and the name, not what the validator calls its state."""
    with pytest.raises(InvalidSignature, match=f"class '{name}': an annotation names 'Missing', which is not defined"):
        rebuild(annotation, for_parameter=True)


def test_a_model_that_pydantic_can_finish_later_is_left_alone() -> None:
    """A class defined below the one that names it is found."""

    class Later(BaseModel):
        next: "Soon"

    class Soon(BaseModel):
        a: int

    assert rebuild(list[Later], for_parameter=True) == list[Later]


def test_an_alias_that_cannot_be_evaluated_is_named() -> None:
    """A type alias is the author's expression too."""
    with pytest.raises(InvalidSignature, match="type alias 'Bad' cannot be evaluated"):
        value_of_alias(_BadAlias())


class _BadAlias:
    __name__ = "Bad"

    @property
    def __value__(self) -> Any:
        return 1 / 0


def test_plain_class_is_published_like_a_model() -> None:
    """Any class with annotated attributes is an object, titled by its name: founding page, contract row A4."""
    assert schema_of(Harbour) == {
        "$defs": {
            "Station": {
                "title": "Station",
                "description": "A weather station.",
                "type": "object",
                "properties": {
                    "name": {"title": "Name", "type": "string"},
                    "online": {"title": "Online", "type": "boolean", "default": True},
                },
                "required": ["name"],
            }
        },
        "title": "Harbour",
        "type": "object",
        "properties": {
            "name": {"title": "Name", "type": "string"},
            "online": {"title": "Online", "type": "boolean", "default": True},
            "berths": {"title": "Berths", "type": "integer"},
            "nearest": {"anyOf": [{"$ref": "#/$defs/Station"}, {"type": "null"}], "default": None},
        },
        "required": ["name", "berths"],
    }


def test_instances_of_a_plain_class_validate() -> None:
    """Instances and dicts fit a rebuilt class, nested in lists too."""
    adapter = TypeAdapter(rebuild(list[Tree]))
    value = adapter.validate_python([Tree("a", Tree("b")), {"name": "c", "branches": [Tree("d")]}])
    assert adapter.dump_python(value) == [
        {"name": "a", "branches": [{"name": "b", "branches": []}]},
        {"name": "c", "branches": [{"name": "d", "branches": []}]},
    ]
    with pytest.raises(ValidationError, match="branches"):
        adapter.validate_python([{"name": "a"}])


def test_any_attribute_name_can_be_a_field() -> None:
    """Attributes named like a model's own methods keep their names."""
    adapter = TypeAdapter(rebuild(Awkward))
    properties = adapter.json_schema(mode="serialization")["properties"]
    assert {name: one["title"] for name, one in properties.items()} == {
        "schema": "Schema",
        "copy": "Copy",
        "model_config": "Model Config",
    }
    dumped = adapter.dump_json(adapter.validate_python(Awkward()))
    assert dumped == b'{"schema":"s","copy":1,"model_config":"c"}'


def test_slots_and_struct_attributes_are_read() -> None:
    """Slots and msgspec Structs carry descriptors on the class, which are no defaults."""

    class Slots:
        __slots__ = ("a",)
        a: int

        def __init__(self) -> None:
            self.a = 5

    class Record(msgspec.Struct):
        a: int

    for one in (Slots(), Record(5)):
        adapter = TypeAdapter(rebuild(type(one)))
        assert adapter.json_schema()["required"] == ["a"]
        assert adapter.dump_python(adapter.validate_python(one)) == {"a": 5}


class Shape(Protocol):
    area: int


@pytest.mark.parametrize("annotation", [Station, Harbour, type("Annotated", (), {"__annotations__": {"a": int}})])
def test_annotated_classes_are_plain(annotation: Any) -> None:
    """A class counts as plain by the annotations in its body or its bases'."""
    assert is_plain_class(annotation)


@pytest.mark.parametrize(
    "annotation",
    [
        int,
        object,
        list[int],
        Weather,
        Reading,
        Shape,
        BaseModel,
        TextContent,
        type("Bare", (), {}),
        type("Text", (str,), {"__annotations__": {"a": int}}),
        typing.NamedTuple("Pair", [("a", int)]),
        datetime.datetime,
        decimal.Decimal,
        pathlib.Path,
    ],
)
def test_other_types_are_not_plain(annotation: Any) -> None:
    """What pydantic knows, what is data of its own kind, and what has no annotations is left alone."""
    assert not is_plain_class(annotation)


def test_plain_class_of_a_parameter_is_left_alone() -> None:
    """A function must get its own type, so a parameter's plain class is not replaced by a model."""
    assert rebuild(list[Station], for_parameter=True) == list[Station]


def test_dataclass_result_with_a_refused_field_validates() -> None:
    """A dataclass that holds a standard-library TypedDict is published and takes instances."""
    adapter = TypeAdapter(rebuild(Reading))
    value = adapter.validate_python(Reading({"temperature": 1.0}, next=Reading({"temperature": 2.0})))
    assert adapter.dump_python(value) == {
        "weather": {"temperature": 1.0},
        "tags": [],
        "next": {"weather": {"temperature": 2.0}, "tags": [], "next": None},
    }
    assert adapter.json_schema()["$defs"]["Weather"] == WEATHER


@pytest.mark.parametrize("cls", [Reading, Slotted])
def test_dataclass_parameter_with_a_refused_field_makes_the_author_s_instances(cls: Any) -> None:
    """A parameter's dataclass is made as the author's own class, equal to one made by hand."""
    adapter = TypeAdapter(rebuild(cls, for_parameter=True))
    value = adapter.validate_python({"weather": {"temperature": 1.0}})
    assert type(value) is cls
    assert value == cls({"temperature": 1.0})


def test_generic_dataclass_with_a_refused_argument_is_rebuilt() -> None:
    """The argument of a generic dataclass is rebuilt, the dataclass itself is not."""
    value = TypeAdapter(rebuild(Box[Weather], for_parameter=True)).validate_python({"item": {"temperature": 1.0}})
    assert value == Box({"temperature": 1.0})


@pytest.mark.parametrize(
    ("annotation", "element", "is_async"),
    [
        (Iterator[int], int, False),
        (collections.abc.Iterable[str], str, False),
        (collections.abc.Generator[int, None, None], int, False),
        (AsyncIterator[Weather], Weather, True),
        (AsyncGenerator[int, None], int, True),
        (collections.abc.AsyncIterable[int], int, True),
        (Annotated[AsyncIterator[int], "note"], int, True),
        (Iterator, Any, False),
        (collections.abc.AsyncIterator, Any, True),
        (list[int], None, False),
        (int, None, False),
        ({}, None, False),
    ],
)
def test_streams_are_known(annotation: Any, element: Any, *, is_async: bool) -> None:
    """The element of a stream annotation, and whether it must be awaited."""
    assert element_of_stream(annotation) is element
    assert is_async_stream(annotation) is is_async


def test_streams_become_lists() -> None:
    """A stream is published and sent as the list of its elements."""
    assert rebuild(Iterator[int]) == list[int]
    assert rebuild(AsyncGenerator[int, None]) == list[int]
    assert rebuild(dict[str, collections.abc.Iterable[int]]) == dict[str, list[int]]
    assert rebuild(collections.abc.Iterator | None) == list[Any] | None
    assert TypeAdapter(rebuild(AsyncIterator[Weather])).validate_python([{"temperature": 1}])
    assert rebuild(Iterator[int], for_parameter=True) == Iterator[int]
