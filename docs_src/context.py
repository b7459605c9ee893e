import contextlib
import sqlite3

from twofold import Context, MCPServer


@contextlib.asynccontextmanager
async def database(server: MCPServer):
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    try:
        yield connection
    finally:
        connection.close()


mcp = MCPServer("importer", lifespan=database)


@mcp.tool(timeout_seconds=60, max_concurrency=1, rate_limit="10/min")
def import_rows(ctx: Context, rows: list[str]) -> int:
    """Import some rows and count them all."""
    ctx.lifespan.execute("create table if not exists rows (value text)")
    for number, row in enumerate(rows, start=1):
        ctx.lifespan.execute("insert into rows values (?)", (row,))
        ctx.report_progress(number, len(rows), f"imported {row}")
    ctx.info({"imported": len(rows)})
    return ctx.lifespan.execute("select count(*) from rows").fetchone()[0]
