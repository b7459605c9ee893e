"""The founding page on structured output: every schema, structured result, text and error opening, exactly.

Its programs stand here with the import line changed; `typing.TypedDict` too, which pydantic alone refuses.
"""

import json
from dataclasses import dataclass
from typing import TypedDict

import pytest
from pydantic import BaseModel, Field

from tests.peer import Peer, text_of
from twofold import DefinitionWarning, InvalidSignature, MCPServer


async def listed_and_called(mcp: MCPServer, name: str, arguments: dict, revision: str = "2025-11-25"):
    async with Peer(mcp, revision) as peer:
        return (await peer.list())[name], await peer.call(name, arguments)


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25", "2025-06-18"])
async def test_a_scalar_is_wrapped_in_result(revision):
    """Output schema; two channels."""
    mcp = MCPServer("Weather")
    READINGS = {"London": 17, "Cairo": 34, "Reykjavik": 4}

    @mcp.tool()
    def get_temperature(city: str) -> int:
        """Current temperature in a city, in whole degrees Celsius."""
        return READINGS[city]

    tool, result = await listed_and_called(mcp, "get_temperature", {"city": "London"}, revision)
    assert tool["description"] == "Current temperature in a city, in whole degrees Celsius."
    assert tool["outputSchema"] == {
        "properties": {"result": {"title": "Result", "type": "integer"}},
        "required": ["result"],
        "title": "get_temperatureOutput",
        "type": "object",
    }
    assert text_of(result) == "17"
    assert result["structuredContent"] == {"result": 17}


@pytest.mark.parametrize(
    ("kind", "value", "schema", "structured", "text"),
    [
        (str, "hi", {"type": "string"}, "hi", "hi"),
        (int, 1, {"type": "integer"}, 1, "1"),
        (float, 1.5, {"type": "number"}, 1.5, "1.5"),
        (bool, True, {"type": "boolean"}, True, "true"),
        (bytes, b"hi", {"type": "string", "contentEncoding": "base64"}, "aGk=", "aGk="),
        (None, None, {"type": "null"}, None, "null"),
    ],
)
async def test_every_scalar_has_the_same_wrapper(kind, value, schema, structured, text):
    """A3: str, int, float, bool, bytes and None."""
    mcp = MCPServer("Weather")

    def scalar():
        return value

    scalar.__annotations__["return"] = kind
    mcp.add_tool(scalar)
    tool, result = await listed_and_called(mcp, "scalar", {})
    assert tool["outputSchema"] == {
        "properties": {"result": {"title": "Result", **schema}},
        "required": ["result"],
        "title": "scalarOutput",
        "type": "object",
    }
    assert result["structuredContent"] == {"result": structured}
    assert text_of(result) == text


WEATHER = {"temperature": 16.2, "humidity": 0.83, "conditions": "Overcast"}
WEATHER_TEXT = '{\n  "temperature": 16.2,\n  "humidity": 0.83,\n  "conditions": "Overcast"\n}'
WEATHER_SCHEMA = {
    "properties": {
        "temperature": {"title": "Temperature", "type": "number"},
        "humidity": {"title": "Humidity", "type": "number"},
        "conditions": {"title": "Conditions", "type": "string"},
    },
    "required": ["temperature", "humidity", "conditions"],
    "title": "WeatherData",
    "type": "object",
}


async def test_a_model_is_its_own_schema():
    """Return a model."""
    mcp = MCPServer("Weather")

    class WeatherData(BaseModel):
        temperature: float = Field(description="Degrees Celsius.")
        humidity: float = Field(description="Relative humidity, 0 to 1.")
        conditions: str

    @mcp.tool()
    def get_weather(city: str) -> WeatherData:
        """Current weather for a city."""
        return WeatherData(temperature=16.2, humidity=0.83, conditions="Overcast")

    tool, result = await listed_and_called(mcp, "get_weather", {"city": "London"})
    assert tool["outputSchema"] == {
        "properties": {
            "temperature": {"description": "Degrees Celsius.", "title": "Temperature", "type": "number"},
            "humidity": {"description": "Relative humidity, 0 to 1.", "title": "Humidity", "type": "number"},
            "conditions": {"title": "Conditions", "type": "string"},
        },
        "required": ["temperature", "humidity", "conditions"],
        "title": "WeatherData",
        "type": "object",
    }
    assert result["structuredContent"] == WEATHER
    assert text_of(result) == WEATHER_TEXT


async def test_a_typed_dict_gives_the_same_schema():
    """TypedDict, the standard library's."""
    mcp = MCPServer("Weather")

    class WeatherData(TypedDict):
        temperature: float
        humidity: float
        conditions: str

    @mcp.tool()
    def get_weather(city: str) -> WeatherData:
        """Current weather for a city."""
        return WeatherData(temperature=16.2, humidity=0.83, conditions="Overcast")

    tool, result = await listed_and_called(mcp, "get_weather", {"city": "London"})
    assert tool["outputSchema"] == WEATHER_SCHEMA
    assert (result["structuredContent"], text_of(result)) == (WEATHER, WEATHER_TEXT)


@pytest.mark.parametrize("slots", [False, True])
async def test_a_dataclass_gives_the_same_schema(slots):
    """Dataclass."""
    mcp = MCPServer("Weather")

    @dataclass(slots=slots)
    class WeatherData:
        temperature: float
        humidity: float
        conditions: str

    @mcp.tool()
    def get_weather(city: str) -> WeatherData:
        """Current weather for a city."""
        return WeatherData(temperature=16.2, humidity=0.83, conditions="Overcast")

    tool, result = await listed_and_called(mcp, "get_weather", {"city": "London"})
    assert tool["outputSchema"] == WEATHER_SCHEMA
    assert (result["structuredContent"], text_of(result)) == (WEATHER, WEATHER_TEXT)


async def test_a_plain_class_with_hints_gives_the_same_schema():
    """Any plain class whose attributes carry type hints."""
    mcp = MCPServer("Weather")

    class WeatherData:
        temperature: float
        humidity: float
        conditions: str

        def __init__(self, temperature, humidity, conditions):
            self.temperature = temperature
            self.humidity = humidity
            self.conditions = conditions

    @mcp.tool()
    def get_weather(city: str) -> WeatherData:
        """Current weather for a city."""
        return WeatherData(temperature=16.2, humidity=0.83, conditions="Overcast")

    tool, result = await listed_and_called(mcp, "get_weather", {"city": "London"})
    assert tool["outputSchema"] == WEATHER_SCHEMA
    assert (result["structuredContent"], text_of(result)) == (WEATHER, WEATHER_TEXT)


class WeatherData(BaseModel):
    temperature: float
    humidity: float
    conditions: str


async def test_a_list_is_wrapped_and_flattened_for_the_model():
    """Lists."""
    mcp = MCPServer("Weather")

    @mcp.tool()
    def get_forecast(city: str, days: int) -> list[WeatherData]:
        """Daily forecast for a city."""
        return [WeatherData(temperature=16.2 + day, humidity=0.83, conditions="Overcast") for day in range(days)]

    tool, result = await listed_and_called(mcp, "get_forecast", {"city": "London", "days": 2})
    assert tool["outputSchema"] == {
        "$defs": {"WeatherData": WEATHER_SCHEMA},
        "properties": {"result": {"items": {"$ref": "#/$defs/WeatherData"}, "title": "Result", "type": "array"}},
        "required": ["result"],
        "title": "get_forecastOutput",
        "type": "object",
    }
    days = [WEATHER, {**WEATHER, "temperature": 17.2}]
    assert result["structuredContent"] == {"result": days}
    assert [block["type"] for block in result["content"]] == ["text", "text"]
    assert [json.loads(block["text"]) for block in result["content"]] == days


@pytest.mark.parametrize(
    ("kind", "value", "schema", "texts"),
    [
        (
            tuple[int, str],
            (1, "a"),
            {"maxItems": 2, "minItems": 2, "prefixItems": [{"type": "integer"}, {"type": "string"}], "type": "array"},
            ["1", "a"],
        ),
        (int | str, "a", {"anyOf": [{"type": "integer"}, {"type": "string"}]}, ["a"]),
        (WeatherData | None, None, {"anyOf": [{"$ref": "#/$defs/WeatherData"}, {"type": "null"}]}, ["null"]),
    ],
)
async def test_tuples_unions_and_optionals_are_wrapped_the_same_way(kind, value, schema, texts):
    """A5."""
    mcp = MCPServer("Weather")

    def wrapped():
        return value

    wrapped.__annotations__["return"] = kind
    mcp.add_tool(wrapped)
    tool, result = await listed_and_called(mcp, "wrapped", {})
    published = dict(tool["outputSchema"]["properties"]["result"])
    published.pop("title", None)  # pydantic gives a union with a model in it none
    assert published == schema
    assert result["structuredContent"] == {"result": list(value) if isinstance(value, tuple) else value}
    assert [block["text"] for block in result["content"]] == texts


async def test_a_dict_with_text_keys_is_not_wrapped():
    """Dictionaries."""
    mcp = MCPServer("Weather")
    READINGS = {"London": 16.2, "Cairo": 34.1, "Reykjavik": 4.4}

    @mcp.tool()
    def get_temperatures(cities: list[str]) -> dict[str, float]:
        """Current temperature for each city, in degrees Celsius."""
        return {city: READINGS[city] for city in cities}

    tool, result = await listed_and_called(mcp, "get_temperatures", {"cities": ["London", "Reykjavik"]})
    assert tool["outputSchema"] == {
        "additionalProperties": {"type": "number"},
        "title": "get_temperaturesDictOutput",
        "type": "object",
    }
    assert result["structuredContent"] == {"London": 16.2, "Reykjavik": 4.4}


async def test_a_dict_with_other_keys_is_wrapped():
    mcp = MCPServer("Weather")

    @mcp.tool()
    def by_number() -> dict[int, float]:
        return {1: 0.5}

    tool, result = await listed_and_called(mcp, "by_number", {})
    assert list(tool["outputSchema"]["properties"]) == ["result"]
    assert result["structuredContent"] == {"result": {"1": 0.5}}


async def test_an_upstream_that_broke_its_promise_is_named():
    """Validation: the call fails, and the error's first lines name the field."""
    mcp = MCPServer("Weather")
    UPSTREAM = {"London": '{"temperature": 16.2, "conditions": "Overcast"}'}

    @mcp.tool()
    def get_weather(city: str) -> WeatherData:
        """Current weather for a city."""
        return json.loads(UPSTREAM[city])

    _, result = await listed_and_called(mcp, "get_weather", {"city": "London"})
    assert result["isError"] is True
    assert "structuredContent" not in result
    assert text_of(result) == (
        "Error executing tool get_weather: 1 validation error for WeatherData\n"
        "humidity\n"
        "  Field required [type=missing, input_value={'temperature': 16.2, 'conditions': 'Overcast'}, input_type=dict]"
    )


async def test_a_plain_dict_that_fits_is_fine():
    """Validation looks at the value, not at the Python type."""
    mcp = MCPServer("Weather")

    @mcp.tool()
    def get_weather() -> WeatherData:
        return dict(WEATHER)

    _, result = await listed_and_called(mcp, "get_weather", {})
    assert result["structuredContent"] == WEATHER


async def test_opting_out_leaves_text_only():
    """Opting out."""
    mcp = MCPServer("Weather")

    @mcp.tool(structured_output=False)
    def weather_report(city: str) -> str:
        """A human-readable weather report for a city."""
        return f"{city}: 17 degrees, overcast, light rain easing by evening."

    tool, result = await listed_and_called(mcp, "weather_report", {"city": "London"})
    assert "outputSchema" not in tool
    assert "structuredContent" not in result
    assert text_of(result) == "London: 17 degrees, overcast, light rain easing by evening."
    assert (await mcp.call_tool("weather_report", {"city": "London"})).structured_content is None


class Station:
    def __init__(self, name: str, online: bool):
        self.name = name
        self.online = online


async def test_a_class_without_hints_opts_out_but_never_silently():
    """Classes without type hints: the page's silence and its repr are the one deliberate departure (A12)."""
    mcp = MCPServer("Weather")
    with pytest.warns(DefinitionWarning, match="Station"):

        @mcp.tool()
        def get_station(name: str) -> Station:
            """Look up a weather station by name."""
            return Station(name=name, online=True)

    tool, result = await listed_and_called(mcp, "get_station", {"name": "x"})
    assert "outputSchema" not in tool
    assert result["isError"] is True
    assert "0x" not in text_of(result)
    assert "Station" in text_of(result)


def test_insisting_on_structure_refuses_a_class_without_hints():
    """structured_output=True makes it an error at import."""
    mcp = MCPServer("Weather")
    with pytest.raises(InvalidSignature) as caught:

        @mcp.tool(structured_output=True)
        def get_station(name: str) -> Station:
            return Station(name=name, online=True)

    assert str(caught.value).startswith(
        f"Function get_station: return type <class '{Station.__module__}.Station'> is not serializable for structured output"
    )
