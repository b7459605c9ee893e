"""What the package shows, and what importing it does not load."""

import inspect
import re
import subprocess
import sys

import pytest

import twofold
from twofold import errors, types

NAMES = {
    "Annotations", "ArgumentsRefused", "Audio", "AudioContent", "BlobResourceContents", "CallToolResult", "ContentBlock",
    "Context", "DefinitionWarning", "EmbeddedResource", "Header", "Icon", "Image", "ImageContent", "InvalidDefinition",
    "InternalError", "InvalidParams", "InvalidRequest", "InvalidSignature", "MCPServer", "MethodNotFound", "ParseError", "ProtocolError",
    "RateLimit", "ResourceContents", "ResourceLink", "ResultRefused", "TextContent", "TextResourceContents", "Tool",
    "ToolAnnotations", "ToolDefinition", "ToolError", "ToolOptions", "TransportError", "TwofoldError",
    "UnsupportedProtocolVersion", "AuthorizationError", "Forbidden", "HeaderMismatch", "HttpRequest",
    "MissingRequiredClientCapability", "PromptMessage", "PromptOptions", "ProtectedResource", "Unauthorized",
    "Authorize", "Limits", "CheckedResult", "Client", "ContractError", "HttpStatusError", "InputRequired", "NotSent",
    "OutcomeUnknown", "ResultTypeMismatch", "SchemaFetching", "SessionGone", "StdioServer", "ToolListing", "UnknownContent", "Verdict",
}  # fmt: skip


def test_the_public_names_are_these():
    """A name that appears or goes is a decision, not an accident."""
    assert set(twofold.__all__) == NAMES
    assert all(hasattr(twofold, name) for name in NAMES)


def test_the_wire_vocabulary_is_the_same_objects():
    assert all(getattr(twofold, name, getattr(types, name)) is getattr(types, name) for name in types.__all__)


@pytest.mark.parametrize("name", sorted(NAMES - {"ContentBlock", "Authorize"}))
def test_every_public_name_says_what_it_is(name):
    assert inspect.getdoc(getattr(twofold, name))


@pytest.mark.parametrize(
    "module",
    [
        "cyclopts",
        "rich",
        "http",
        "httpx",
        "uvicorn",
        "starlette",
        "docstring_parser",
        "anyio",
        "twofold.transports.http",
        "pydantic",
        "jsonschema_rs",
        "importlib.metadata",
        "pathlib",
    ],
)
def test_importing_and_declaring_loads_no_more_than_serving_needs(module):
    """You pay for what you use: no command line, no HTTP; for JSON's own types no pydantic, no judge of schemas."""
    program = (
        "import sys\nfrom twofold import MCPServer\nmcp = MCPServer('s')\n"
        "@mcp.tool()\ndef add(a: int, b: int) -> int:\n    'Add.'\n    return a + b\n"
        f"print({module!r} in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "False"


def test_the_error_tree_is_the_one_that_is_drawn():
    """The tree in the docstring of `errors` is the tree of the classes."""
    drawn = {}
    parents = []
    for line in errors.__doc__.splitlines():
        match = re.match(r"^([ │├└─]*)([A-Z]\w+)", line)
        if match is None or not hasattr(errors, match[2]):
            continue
        depth = len(match[1]) // 3
        parents[depth:] = [match[2]]
        drawn[match[2]] = parents[depth - 1] if depth else None
    classes = {
        name: cls
        for name, cls in vars(errors).items()
        if isinstance(cls, type)
        and issubclass(cls, Exception)
        and not name.startswith("_")
        and cls.__module__ == errors.__name__
    }
    assert set(drawn) == set(classes)
    for name, parent in drawn.items():
        assert parent is None or issubclass(classes[name], classes[parent]), (name, parent)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ParseError, -32700),
        (errors.InvalidRequest, -32600),
        (errors.MethodNotFound, -32601),
        (errors.InvalidParams, -32602),
        (errors.InternalError, -32603),
        (errors.UnsupportedProtocolVersion, -32022),
    ],
)
def test_each_protocol_error_has_its_code(error, code):
    assert (error("x").code, error("x").message, error("x", 1).data) == (code, "x", 1)


def test_mistakes_of_the_author_are_ordinary_python_errors_too():
    assert issubclass(errors.InvalidSignature, TypeError)
    assert issubclass(errors.InvalidDefinition, ValueError)
