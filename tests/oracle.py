"""Who judges the messages: the official wire types, and the official schemas where they lie beside the project.

`mcp-types` is the official SDK's own reading of each revision. If `TWOFOLD_SPEC` names a folder with
`<revision>/schema.json` in it, every message is judged by that schema as well.
"""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
from mcp_types import jsonrpc_message_adapter
from mcp_types.methods import parse_server_notification, validate_server_result

Json = Any


def judge_message(message: Json, *, revision: str, method: str | None = None) -> None:
    """Raise if a message of ours is not valid in a revision.

    Args:
        message: As decoded.
        revision: The revision in use.
        method: The request a response answers.
    """
    # Where an id could not be read the official types want a null, which the official schemas forbid: the newer
    # of these have no id at all then, and that is what is sent.
    jsonrpc_message_adapter.validate_python({"id": None, **message} if "error" in message else message)
    if "method" in message:
        parse_server_notification(message["method"], revision, message.get("params"))
        _judge_by_schema(message, revision, "ServerNotification")
    elif "result" in message:
        assert method is not None, "a response needs its request's method"
        validate_server_result(method, revision, message["result"])
        _judge_by_schema(message["result"], revision, _RESULTS[method])
    _judge_by_schema(message, revision, "JSONRPCMessage")


_RESULTS = {
    "initialize": "InitializeResult",
    "server/discover": "DiscoverResult",
    "ping": "EmptyResult",
    "logging/setLevel": "EmptyResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "prompts/list": "ListPromptsResult",
    "prompts/get": "GetPromptResult",
    "subscriptions/listen": "SubscriptionsListenResult",
}


def _judge_by_schema(value: Json, revision: str, name: str) -> None:
    folder = os.environ.get("TWOFOLD_SPEC")
    if folder is None or not (Path(folder) / revision / "schema.json").exists():
        return
    _validator(folder, revision, name).validate(value)


@cache
def _validator(folder: str, revision: str, name: str) -> jsonschema.protocols.Validator:
    schema = json.loads((Path(folder) / revision / "schema.json").read_text())
    key = "$defs" if "$defs" in schema else "definitions"
    judge = jsonschema.Draft202012Validator if key == "$defs" else jsonschema.Draft7Validator
    return judge(
        {**schema, "$ref": f"#/{key}/{name}"} if key == "$defs" else {key: schema[key], "$ref": f"#/{key}/{name}"}
    )
