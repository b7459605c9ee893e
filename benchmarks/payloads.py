"""The functions every peer registers. Values are made once, so that the library is measured and not the tool."""

from typing import Annotated

from pydantic import BaseModel, Field


class User(BaseModel):
    id: int
    name: str
    score: float


class Item(BaseModel):
    id: int
    name: str
    price: float
    in_stock: bool
    note: str


class CheckedItem(Item):
    """The same with a pattern, which only the full check of the bytes against the schema can judge."""

    name: Annotated[str, Field(pattern="^item-[0-9]+$")]


class Row(BaseModel):
    id: int
    label: str
    values: list[float]
    note: str


class Section(BaseModel):
    name: str
    rows: list[Row]


class Report(BaseModel):
    title: str
    sections: list[Section]


class CheckedReport(Report):
    """The same with a pattern."""

    title: Annotated[str, Field(pattern="^report")]


def _item(number: int) -> dict:
    return {
        "id": number,
        "name": f"item-{number}",
        "price": number * 1.25,
        "in_stock": number % 2 == 0,
        "note": 'a "quoted" note é',
    }


_SECTIONS = [
    Section(
        name=f"section-{section}",
        rows=[
            Row(id=row, label=f"row {section}/{row}", values=[row * 0.5 + k for k in range(10)], note="x" * 80)
            for row in range(100)
        ],
    )
    for section in range(50)
]
ITEMS = [Item(**_item(number)) for number in range(1000)]
CHECKED_ITEMS = [CheckedItem(**_item(number)) for number in range(1000)]
REPORT = Report(title="report", sections=_SECTIONS)
CHECKED_REPORT = CheckedReport(title="report", sections=_SECTIONS)


async def integer(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y


async def model(id: int) -> User:
    """Get a user."""
    return User(id=id, name="Ada Lovelace", score=0.5)


async def models(n: int) -> list[Item]:
    """List items."""
    return ITEMS


async def models_checked(n: int) -> list[CheckedItem]:
    """List items whose names have a pattern."""
    return CHECKED_ITEMS


async def large(n: int) -> Report:
    """Get a report of 0.9 MB."""
    return REPORT


async def large_checked(n: int) -> CheckedReport:
    """Get a report of 0.9 MB whose title has a pattern."""
    return CHECKED_REPORT


def sync(x: int, y: int) -> int:
    """Add two numbers in a thread."""
    return x + y


CALLS = {
    integer: {"x": 2, "y": 40},
    model: {"id": 7},
    models: {"n": 1},
    models_checked: {"n": 1},
    large: {"n": 1},
    large_checked: {"n": 1},
    sync: {"x": 2, "y": 40},
}


def make_tools(count: int) -> list:
    """Make small tools, all alike but for their names: what a large server lists."""

    def make_tool(number: int):
        async def tool(query: str, limit: int = 10, tag: str | None = None) -> User:
            """Search things by query and return the best user."""
            return User(id=1, name=query, score=0.5)

        tool.__name__ = f"tool_{number}"
        return tool

    return [make_tool(number) for number in range(count)]
