"""An application for ASGI servers that start processes of their own; what it serves, the environment says.

```console
$ TWOFOLD_TARGET=shop.py uvicorn --factory twofold.cli.asgi:app_from_environment --workers 4
```
"""

import os
from collections.abc import Mapping
from typing import Any

from twofold.cli.failures import NotLoaded
from twofold.cli.target import FORMS, load_target
from twofold.transports.http.app import StreamableHTTP

_PREFIX = "TWOFOLD_"
_STATELESS = {"1": True, "0": False}


def app_from_environment(environment: Mapping[str, str] | None = None) -> StreamableHTTP:
    """Load a server and give its Streamable HTTP application.

    Args:
        environment: `TWOFOLD_TARGET` as for `twofold serve`, and if need be `TWOFOLD_PATH`, `TWOFOLD_ALLOWED_HOSTS`
            and `TWOFOLD_ALLOWED_ORIGINS` (commas between several), and `TWOFOLD_STATELESS`: 1, as several processes
            behind one address need it, or 0 where there is one alone. This process's own if None.

    Raises:
        NotLoaded: The target is not said, or does not lead to a server.
        ValueError: An option that cannot hold.
    """
    given = os.environ if environment is None else environment
    target = given.get(f"{_PREFIX}TARGET")
    if not target:
        raise NotLoaded(f"{_PREFIX}TARGET: expected what is to be served, found nothing; {FORMS}")
    stateless = given.get(f"{_PREFIX}STATELESS", "1")
    if stateless not in _STATELESS:
        raise ValueError(f"{_PREFIX}STATELESS: expected 1 or 0, got {stateless!r:.80}")
    options: dict[str, Any] = {"stateless": _STATELESS[stateless]}
    if f"{_PREFIX}PATH" in given:
        options["path"] = given[f"{_PREFIX}PATH"]
    for name in ("allowed_hosts", "allowed_origins"):
        if f"{_PREFIX}{name.upper()}" in given:
            options[name] = [each.strip() for each in given[f"{_PREFIX}{name.upper()}"].split(",")]
    return load_target(target).streamable_http_app(**options)
