"""`python -m twofold.testing.hostile SCRIPT…`: a hostile server over stdio."""

import asyncio
import sys
from collections.abc import Sequence

from twofold.testing.hostile.over_stdio import serve_stdio
from twofold.testing.hostile.script import MISBEHAVIOURS, Script


def main(entries: Sequence[str]) -> int:
    """Serve; gives the exit code: 2 if the script says what nobody understands."""
    if "--help" in entries or "-h" in entries:
        print(__doc__)
        for each in MISBEHAVIOURS.values():
            only = f" ({each.transport} only)" if each.transport else ""
            print(f"  {each.name}@{each.method}{only}: {each.what}")
        return 0
    try:
        script = Script(entries, transport="stdio")
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    asyncio.run(serve_stdio(script))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
