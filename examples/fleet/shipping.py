"""Shipping quotes from the warehouses of one region: what each process of the fleet serves.

`FLEET_REGION` says which region this process is in, `FLEET_JOURNAL` which file all write down what they do. `region` is
repeated by clients in the header `Mcp-Param-Region`: the balancer finds the right process without looking into a body.
"""

import asyncio
import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from twofold import Context, Header, MCPServer, ToolAnnotations

REGION = os.environ.get("FLEET_REGION", "nowhere")
JOURNAL = Path(os.environ.get("FLEET_JOURNAL", os.devnull))
PRICES = {"eu": (4.5, "EUR"), "us": (5.25, "USD")}
PACKING_SECONDS = 0.05
LOOK_SECONDS = 0.05

mcp = MCPServer(
    "shipping",
    title="Shipping, by region",
    version="1.0.0",
    instructions="Quote before you ship. A parcel that may be on its way is not shipped again: follow it first.",
)

Region = Annotated[Literal["eu", "us"], Header("Region"), Field(description="Whose warehouses ship it.")]


class ServedBy(BaseModel):
    """Which of the fleet did it."""

    region: str
    process_id: int


class Quote(BaseModel):
    """What shipping would cost."""

    price: float
    currency: str
    served_by: ServedBy


class Shipment(BaseModel):
    """A parcel on its way."""

    parcel: str
    region: str
    served_by: ServedBy


@mcp.tool(title="Quote shipping", annotations=ToolAnnotations(read_only_hint=True))
def quote(region: Region, weight_kg: Annotated[float, Field(gt=0, le=70)]) -> Quote:
    """Say what shipping a parcel costs."""
    per_kg, currency = PRICES[region]
    return Quote(price=round(3 + per_kg * weight_kg, 2), currency=currency, served_by=served_by())


@mcp.tool(title="Ship a parcel", annotations=ToolAnnotations(destructive_hint=False, idempotent_hint=False))
async def ship(region: Region, parcel: str) -> Shipment:
    """Ship a parcel: once, so nobody on the way may send the call a second time."""
    note("begun", parcel)
    await asyncio.sleep(PACKING_SECONDS)
    note("finished", parcel)
    return Shipment(parcel=parcel, region=region, served_by=served_by())


@mcp.tool(title="Follow a parcel", annotations=ToolAnnotations(read_only_hint=True))
async def follow(region: Region, parcel: str, ctx: Context) -> Shipment:
    """Wait until a parcel is on its way, whichever process ships it."""
    await ctx.report_progress(0, 1, f"{parcel} is not on its way yet")
    try:
        while not is_on_its_way(parcel):  # noqa: ASYNC110 - a file tells nobody that it has grown
            await asyncio.sleep(LOOK_SECONDS)
    except asyncio.CancelledError:  # who asked has gone, or wants to know no more
        note("left", parcel)
        raise
    return Shipment(parcel=parcel, region=region, served_by=served_by())


@mcp.tool(title="Who is there", annotations=ToolAnnotations(read_only_hint=True))
def whoami() -> ServedBy:
    """Tell which of the fleet answers where no region is asked for."""
    return served_by()


def served_by() -> ServedBy:
    return ServedBy(region=REGION, process_id=os.getpid())


def note(what: str, parcel: str) -> None:
    """Write a line to the journal; one write each, so that lines of several processes stay whole."""
    with JOURNAL.open("ab", buffering=0) as file:
        file.write(f"{what} {os.getpid()} {parcel}\n".encode())


def is_on_its_way(parcel: str) -> bool:
    """Look into the journal, where every process of the fleet writes."""
    lines = JOURNAL.read_text(encoding="utf-8").splitlines() if JOURNAL.exists() else []
    return any(line.split(" ", 2)[::2] == ["finished", parcel] for line in lines)


if __name__ == "__main__":
    mcp.run()
