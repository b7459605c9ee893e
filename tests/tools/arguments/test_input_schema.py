"""Published input schemas: what cannot be named in them is refused."""

import dataclasses
from typing import Annotated, Any

import pytest
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema
from typing_extensions import TypedDict

from twofold.tools.arguments.input_schema import GenerateInputSchema

PATH = Annotated[int, Field(validation_alias=AliasPath("p", "q"))]


class Model(BaseModel):
    a: PATH


class Keys(TypedDict):
    a: PATH


@dataclasses.dataclass
class Record:
    a: Annotated[int, Field(validation_alias=AliasChoices(AliasPath("p", "q"), AliasPath("r", 0)))]


def publish(annotation: Any) -> dict[str, Any]:
    return TypeAdapter(annotation).json_schema(schema_generator=GenerateInputSchema)


@pytest.mark.parametrize("annotation", [Model, Keys, Record, list[Model]])
def test_a_field_whose_only_alias_is_a_path_is_refused(annotation: Any) -> None:
    """Its own name would be published, and then not taken: a tool that can never be called."""
    with pytest.raises(PydanticInvalidForJsonSchema, match="the alias 'p.q' is a path and no name"):
        publish(annotation)


def test_a_field_with_a_name_besides_the_path_is_published_by_it() -> None:
    """The first alias that is a name, or the field's own where the model takes it."""

    class Named(BaseModel):
        a: int = Field(validation_alias=AliasChoices(AliasPath("p", "q"), "n"))

    class ByName(Model):
        model_config = ConfigDict(validate_by_name=True)

    assert list(publish(Named)["properties"]) == ["n"]
    assert list(publish(ByName)["properties"]) == ["a"]
