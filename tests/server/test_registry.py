"""Tools added, removed, listed in a fixed order, in pages."""

import pytest

from tests.peer import REVISIONS, Peer, Refused
from twofold import InvalidDefinition, MCPServer


def make_many(count: int, page_size: int) -> MCPServer:
    mcp = MCPServer("s", page_size=page_size)
    for number in range(count):
        mcp.add_tool(lambda: "x", name=f"tool_{number}")
    return mcp


@pytest.mark.parametrize("revision", REVISIONS)
async def test_pages_hold_every_tool_once_in_the_order_they_were_added(revision):
    """A23: a fixed order, paged."""
    async with Peer(make_many(7, 3), revision) as peer:
        first = await peer.request("tools/list", peer.params())
        assert [tool["name"] for tool in first["tools"]] == ["tool_0", "tool_1", "tool_2"]
        assert list(await peer.list()) == [f"tool_{number}" for number in range(7)]


async def test_the_last_full_page_has_no_cursor():
    async with Peer(make_many(3, 3)) as peer:
        assert "nextCursor" not in await peer.request("tools/list", peer.params())


async def test_a_server_without_tools_lists_none():
    async with Peer(MCPServer("s")) as peer:
        assert (await peer.request("tools/list", peer.params()))["tools"] == []


async def test_a_cursor_outlives_the_tool_it_stood_at():
    """Pagination: cursors are stable."""
    mcp = make_many(4, 2)
    async with Peer(mcp) as peer:
        cursor = (await peer.request("tools/list", peer.params()))["nextCursor"]
        mcp.remove_tool("tool_1")
        rest = await peer.request("tools/list", peer.params({"cursor": cursor}))
        assert [tool["name"] for tool in rest["tools"]] == ["tool_2", "tool_3"]


@pytest.mark.parametrize("cursor", ["", "nonsense", "YWZ0ZXI6LTE=", "YWZ0ZXI6", "\x00"])
async def test_an_unknown_cursor_is_refused(cursor):
    """Pagination: invalid cursors, -32602."""
    async with Peer(make_many(3, 2)) as peer:
        with pytest.raises(Refused) as caught:
            await peer.request("tools/list", peer.params({"cursor": cursor}))
        assert caught.value.code == -32602


async def test_a_tool_added_later_is_listed_and_a_removed_one_is_not():
    mcp = make_many(2, 10)
    async with Peer(mcp) as peer:
        assert list(await peer.list()) == ["tool_0", "tool_1"]
        mcp.add_tool(lambda: "x", name="new")
        mcp.remove_tool("tool_0")
        assert list(await peer.list()) == ["tool_1", "new"]
        with pytest.raises(Refused, match="Unknown tool: 'tool_0'; did you mean 'tool_1'"):
            await peer.call("tool_0")


def test_a_name_that_is_taken_is_refused():
    """A16: the same name twice is an error at registration."""
    mcp = make_many(1, 10)
    with pytest.raises(InvalidDefinition, match="tool 'tool_0' is there already"):
        mcp.add_tool(lambda: "x", name="tool_0")


def test_removing_what_is_not_there_names_near_tools():
    mcp = make_many(1, 10)
    with pytest.raises(KeyError, match="no tool 'tool_1'; did you mean 'tool_0'"):
        mcp.remove_tool("tool_1")


async def test_cache_hints_are_the_servers():
    """Caching: ttlMs and cacheScope on every complete result of tools/list."""
    mcp = MCPServer("s", list_ttl_seconds=1.5, list_scope="private")
    async with Peer(mcp) as peer:
        page = await peer.request("tools/list", peer.params())
        assert (page["ttlMs"], page["cacheScope"]) == (1500, "private")
