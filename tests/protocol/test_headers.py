"""Mirrored headers: written and read back without loss, and refused wherever they say something else than the body."""

import binascii
import contextlib
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold.errors import HeaderMismatch
from twofold.protocol.headers import (
    LAST_EVENT_ID,
    METHOD,
    NAME,
    PARAM_PREFIX,
    PROTOCOL_VERSION,
    SESSION_ID,
    HeaderParameter,
    check_parameters,
    check_request,
    decode_value,
    encode_value,
    mirror_parameters,
)

REGION = HeaderParameter(("region",), "Region", "string")
SHARD = HeaderParameter(("shard",), "Shard", "integer")
DRY = HeaderParameter(("options", "dry"), "X-Dry.Run", "boolean")
KEY = HeaderParameter(("api_key",), "Key", "string", is_secret=True)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["region", "options", "dry"]), inner),
    max_leaves=6,
)


def sentinel(raw: bytes) -> str:
    return f"=?base64?{binascii.b2a_base64(raw, newline=False).decode()}?="


def refuse_value(raw: bytes) -> str:
    with pytest.raises(HeaderMismatch) as caught:
        decode_value(raw, header="Mcp-Name")
    assert caught.value.data is None
    return caught.value.message


def refuse_call(parameters, arguments, **said: str) -> str:
    """Refuse the arguments beside headers given as `region="eu"`."""
    with pytest.raises(HeaderMismatch) as caught:
        check_parameters(as_headers(**said), parameters, arguments)
    return caught.value.message


def as_headers(**said: str) -> dict[bytes, bytes]:
    return {PARAM_PREFIX + name.encode(): value.encode() for name, value in said.items()}


def test_names_are_those_of_the_specification_in_lower_case():
    """Header names do not heed capitals (RFC 9110, 5.1); ASGI hands them over in lower case."""
    assert (PROTOCOL_VERSION, METHOD, NAME, PARAM_PREFIX, SESSION_ID, LAST_EVENT_ID) == (
        b"mcp-protocol-version",
        b"mcp-method",
        b"mcp-name",
        b"mcp-param-",
        b"mcp-session-id",
        b"last-event-id",
    )
    assert DRY.field == b"mcp-param-x-dry.run"


@given(st.text())
def test_any_text_comes_back_as_it_was_sent(text):
    """decode(encode(x)) = x (2026-07-28, "Value Encoding")."""
    assert decode_value(encode_value(text).encode(), header="Mcp-Name") == text


@given(st.text(alphabet="=?base64 \tA", max_size=30))
def test_texts_that_look_encoded_come_back_too(text):
    """What matches the sentinel pattern is encoded once more ("Value Encoding")."""
    for value in (text, f"=?base64?{text}?=", "=?base64?="):
        assert decode_value(encode_value(value).encode(), header="Mcp-Name") == value


@given(st.text() | st.integers(-(10**40), 10**40) | st.booleans())
def test_what_is_written_is_visible_ascii_with_blanks_inside_only(value):
    """Field values are visible ASCII and blanks, and nothing may be lost at their ends (RFC 9110, 5.5)."""
    written = encode_value(value)
    assert all(" " <= character <= "~" for character in written)
    assert written == written.strip()


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("us-west1", "us-west1"),
        ("Seattle, WA", "Seattle, WA"),
        ("", ""),
        ("x", "x"),
        (42, "42"),
        (-7, "-7"),
        (10**30, "1" + "0" * 30),
        (True, "true"),
        (False, "false"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("a\tb", "=?base64?YQli?="),
        ("\x7f", "=?base64?fw==?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("=?base64?half", "=?base64?half"),
    ],
)
def test_values_are_written_as_the_specification_shows(value, written):
    """Plain where it is safe, else base64 of UTF-8 ("Value Encoding", its examples)."""
    assert encode_value(value) == written


def test_half_of_a_surrogate_pair_cannot_be_written():
    """There is no UTF-8 for it; the caller's fault."""
    with pytest.raises(ValueError, match="half of a surrogate pair at character 1; send text without it"):
        encode_value("a\ud800")


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"add", "add"),
        (b" \tadd\t ", "add"),
        (b"", ""),
        (b"   ", ""),
        (b"a b\tc", "a b\tc"),
        (b"=?base64??=", ""),
        (b"=?base64?w6k=?=", "é"),
        (b"  =?base64?w6k=?=  ", "é"),
        (b"=?base64?w6k=", "=?base64?w6k="),
        (b"w6k=?=", "w6k=?="),
        (b"=?BASE64?w6k=?=", "=?BASE64?w6k=?="),
        (b"=?base64?=", "=?base64?="),
    ],
)
def test_values_are_read(raw, text):
    """Without prefix or suffix, both case-sensitive, a value is what it says; blanks around it do not count."""
    assert decode_value(raw, header="Mcp-Name") == text


@pytest.mark.parametrize(
    "payload",
    ["w6k", "w6k==", "w6k=x", "w6 k=", "w6-_", "=", "w6k=w6k=", "A", "w6l=", "w6k=\t", "é", "?=?="],
)
def test_base64_that_is_not_exact_is_refused(payload):
    """Wrong alphabet, padding, or left-over bits: two readers could read two things."""
    message = refuse_value(f"=?base64?{payload}?=".encode("latin-1"))
    assert message.startswith("Mcp-Name: expected ")
    assert "got '=?base64?" in message


def test_base64_that_is_not_utf8_is_refused_with_the_place():
    """The content is text in UTF-8."""
    assert refuse_value(sentinel(b"a\xff").encode()) == (
        "Mcp-Name: expected base64 with padding between =?base64? and ?=, got '=?base64?Yf8=?=' "
        "(byte 1 of its content is not UTF-8); encode the value's UTF-8 bytes"
    )


@pytest.mark.parametrize("raw", ["é".encode(), b"\xe9", b"a\x00b", b"a\nb", b"a\x7f", b"a\r"])
def test_bytes_that_no_header_has_are_refused(raw):
    """A header value that contains invalid characters is refused ("Server Validation")."""
    assert refuse_value(raw) == (
        f"Mcp-Name: expected visible ASCII, got {raw.decode('latin-1')!r}; "
        "send any other text as =?base64?…?= of its UTF-8 bytes"
    )


@given(st.binary())
def test_arbitrary_values_raise_nothing_but_a_mismatch(raw):
    """A hostile peer can send anything."""
    with contextlib.suppress(HeaderMismatch):
        decode_value(raw, header="Mcp-Name")


GOOD = {PROTOCOL_VERSION: b"2026-07-28", METHOD: b"tools/call", NAME: b"add"}


def check(headers, *, method: str = "tools/call", name: str | None = "add") -> None:
    check_request(headers, protocol_version="2026-07-28", method=method, name=name)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "add"),
        ({METHOD: b"\ttools/call "}, "add"),
        ({NAME: b" add "}, "add"),
        ({NAME: b"=?base64?YWRk?="}, "add"),
        ({NAME: encode_value("größe").encode()}, "größe"),
        ({NAME: b"=?base64?PT9iYXNlNjQ/YT89?="}, "=?base64?a?="),
        ({NAME: b""}, ""),
        ({NAME: b"\xff"}, None),
    ],
)
def test_headers_that_say_what_the_body_says_pass(changes, name):
    """Encoded names are decoded before the comparison; where no name is mirrored, a stray one is ignored."""
    assert check({**GOOD, **changes}, name=name) is None


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        (PROTOCOL_VERSION, "MCP-Protocol-Version: the header is missing, the body says '2026-07-28'"),
        (METHOD, "Mcp-Method: the header is missing, the body says 'tools/call'"),
        (NAME, "Mcp-Name: the header is missing, the body says 'add'"),
    ],
)
def test_a_missing_header_is_refused(missing, message):
    """All three are required ("Standard Request Headers")."""
    with pytest.raises(HeaderMismatch) as caught:
        check({name: value for name, value in GOOD.items() if name != missing})
    assert (caught.value.code, caught.value.message) == (-32020, f"{message}; send it with the request")


@pytest.mark.parametrize(
    ("field", "raw", "message"),
    [
        (
            PROTOCOL_VERSION,
            b"2025-11-25",
            "MCP-Protocol-Version: the header says '2025-11-25', the body says '2026-07-28'; make them agree",
        ),
        (
            METHOD,
            b"TOOLS/CALL",
            "Mcp-Method: the header says 'TOOLS/CALL', the body says 'tools/call'; make them agree",
        ),
        (
            METHOD,
            b"=?base64?dG9vbHMvY2FsbA==?=",
            "Mcp-Method: the header says '=?base64?dG9vbHMvY2FsbA==?=', the body says 'tools/call'; make them agree",
        ),
        (NAME, b"Add", "Mcp-Name: the header says 'Add', the body says 'add'; make them agree"),
        (NAME, b"", "Mcp-Name: the header says '', the body says 'add'; make them agree"),
    ],
)
def test_a_header_that_says_something_else_is_refused(field, raw, message):
    """Values are case-sensitive, and only names and parameters have an encoded form ("Case Sensitivity")."""
    with pytest.raises(HeaderMismatch) as caught:
        check({**GOOD, field: raw})
    assert caught.value.message == message


@pytest.mark.parametrize("method", ["größe", "a\tb", " ping", "a\ud800"])
def test_a_method_that_no_header_can_say_never_agrees(method):
    """Not even with its own bytes: they are no field value."""
    with pytest.raises(HeaderMismatch, match="Mcp-Method: the header says"):
        check({**GOOD, METHOD: method.encode("utf-8", "surrogatepass")}, method=method)


@pytest.mark.parametrize("name", ["größe", "=?base64?YQ==?="])
def test_a_name_in_its_plain_bytes_is_refused_where_it_must_be_encoded(name):
    """Else the bytes would be read as another name, or as none."""
    with pytest.raises(HeaderMismatch, match="Mcp-Name"):
        check({**GOOD, NAME: name.encode()}, name=name)


def test_what_a_message_shows_is_cut():
    """A foreign value is shown with 80 characters at most (STYLE: messages)."""
    with pytest.raises(HeaderMismatch) as caught:
        check({**GOOD, NAME: b"x" * 10_000}, name="y" * 10_000)
    assert caught.value.message == (
        f"Mcp-Name: the header says '{'x' * 79}, the body says '{'y' * 79}; make them agree"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"region": "eu"}, {"region": "eu"}),
        ({"region": "größe"}, {"region": "=?base64?Z3LDtsOfZQ==?="}),
        ({"region": ""}, {"region": ""}),
        ({"region": None}, {}),
        ({}, {}),
        (None, {}),
        ([], {}),
        ("region", {}),
        ({"region": "eu"}, {"region": "eu", "unknown": "\x00"}),
        ({"shard": 42}, {"shard": "42"}),
        ({"shard": 42}, {"shard": "42.0"}),
        ({"shard": 42.0}, {"shard": "42"}),
        ({"shard": 42}, {"shard": "4.2e1"}),
        ({"shard": 42}, {"shard": "420E-1"}),
        ({"shard": 42}, {"shard": "=?base64?NDI=?="}),
        ({"shard": 0}, {"shard": "-0"}),
        ({"shard": 2**70}, {"shard": str(2**70)}),
        ({"shard": 2**70}, {"shard": f"{2**70}.0"}),
        ({"shard": 1e23}, {"shard": "1e23"}),
        ({"shard": 1e23}, {"shard": "1" + "0" * 23}),
        ({"shard": "42"}, {"shard": "42"}),
        ({"shard": 4.5}, {"shard": "4.50"}),
        ({"shard": 4.5}, {}),
        ({"shard": [1]}, {}),
        ({"shard": {"a": 1}}, {}),
        ({"options": {"dry": True}}, {"x-dry.run": "true"}),
        ({"options": {"dry": False}}, {"x-dry.run": "false"}),
        ({"options": {"dry": None}}, {}),
        ({"options": {}}, {}),
        ({"options": None}, {}),
        ({"options": [{"dry": True}]}, {}),
        ({"options": '{"dry": true}'}, {"x-dry.run": "true"}),
        ({"options": "dry"}, {}),
        ({"options": "{" * 100_000}, {}),
    ],
)
def test_arguments_and_headers_that_agree_pass(arguments, said):
    """Null and absent have no header, numbers are compared as numbers, unknown headers are ignored.

    Source: 2026-07-28, "Server Behavior for Custom Headers" and "Server Validation".
    """
    assert check_parameters(as_headers(**said), (REGION, SHARD, DRY), arguments) is None


@pytest.mark.parametrize(
    ("arguments", "said", "message"),
    [
        (
            {"region": "eu"},
            {},
            "Mcp-Param-Region: the header is missing, the argument 'region' is 'eu'; send it with the request",
        ),
        (
            {"options": {"dry": False}},
            {},
            "Mcp-Param-X-Dry.Run: the header is missing, the argument 'options.dry' is False; send it with the request",
        ),
        (
            {"options": '{"dry": true}'},
            {},
            "Mcp-Param-X-Dry.Run: the header is missing, the argument 'options.dry' is True; send it with the request",
        ),
        (
            {"region": None},
            {"region": "eu"},
            "Mcp-Param-Region: the header is there, but the argument 'region' is null or absent; leave the header out",
        ),
        (
            None,
            {"region": ""},
            "Mcp-Param-Region: the header is there, but the argument 'region' is null or absent; leave the header out",
        ),
        (
            {"region": "eu"},
            {"region": "us"},
            "Mcp-Param-Region: the header says 'us', the argument 'region' is 'eu'; make them agree",
        ),
        (
            {"region": {"a": 1}},
            {"region": "us"},
            "Mcp-Param-Region: the header says 'us', the argument 'region' is an object; make them agree",
        ),
        (
            {"region": ["us"]},
            {"region": "us"},
            "Mcp-Param-Region: the header says 'us', the argument 'region' is an array; make them agree",
        ),
        (
            {"shard": 2**53},
            {"shard": str(2**53 + 1)},
            f"Mcp-Param-Shard: the header says '{2**53 + 1}', the argument 'shard' is {2**53}; make them agree",
        ),
    ],
)
def test_arguments_and_headers_that_differ_are_refused(arguments, said, message):
    """The table of "Server Behavior for Custom Headers", and exactly so for numbers beyond floats."""
    assert refuse_call((REGION, SHARD, DRY), arguments, **said) == message


@pytest.mark.parametrize(
    "said",
    ["NaN", "Infinity", "0x2A", "4_2", "+42", "042", "42.", ".42", "4 2", "", "true", "٤٢", "1e99999", "42" * 1000],
)
def test_what_is_no_json_number_is_no_number(said):
    """The grammar is JSON's, whatever a language would read as well."""
    assert refuse_call((SHARD,), {"shard": 42}, shard=encode_value(said)).startswith("Mcp-Param-Shard: the header says")


@pytest.mark.parametrize("said", ["True", "TRUE", "1", "yes", ""])
def test_booleans_are_true_and_false_alone(said):
    """Lower case, as "Type conversion" has it."""
    assert refuse_call((DRY,), {"options": {"dry": True}}, **{"x-dry.run": said}) == (
        f"Mcp-Param-X-Dry.Run: the header says {said!r}, the argument 'options.dry' is True; make them agree"
    )


def test_an_argument_that_no_text_can_say_never_agrees():
    """Half of a surrogate pair may stand in an argument written as a text."""
    parameter = HeaderParameter(("options", "name"), "Name", "string")
    assert refuse_call((parameter,), {"options": '{"name": "\\ud800"}'}, name="x") == (
        "Mcp-Param-Name: the header says 'x', the argument 'options.name' is '\\ud800'; make them agree"
    )


@pytest.mark.parametrize("said", [{}, {"key": "hunter3"}, {"key": "=?base64?hunter3!?="}])
def test_a_secret_is_in_no_message(said):
    """Neither the argument nor what the header says (STYLE: secrets never)."""
    message = refuse_call((KEY,), {"api_key": "hunter2"}, **said)
    assert message.startswith("Mcp-Param-Key: the ")
    assert "hunter" not in message


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "größe", "shard": 42, "options": {"dry": True}}, ["=?base64?Z3LDtsOfZQ==?=", "42", "true"]),
        ({"region": "", "shard": 42.0, "options": {"dry": False}}, ["", "42", "false"]),
        ({"region": None, "shard": 4.5, "options": None}, [None, None, None]),
        ({"region": ["eu"], "shard": {}, "options": '{"dry": true}'}, [None, None, None]),
        (None, [None, None, None]),
    ],
)
def test_a_call_is_mirrored(arguments, headers):
    """What has a value at its exact path has a header, all else has none ("Client Behavior")."""
    names = ("Mcp-Param-Region", "Mcp-Param-Shard", "Mcp-Param-X-Dry.Run")
    expected = {name: value for name, value in zip(names, headers, strict=True) if value is not None}
    assert mirror_parameters((REGION, SHARD, DRY), arguments) == expected


@given(
    st.fixed_dictionaries(
        {},
        optional={"region": json_values, "shard": json_values, "options": st.dictionaries(st.just("dry"), json_values)},
    )
)
def test_what_is_mirrored_passes_the_check(arguments):
    """What our client sends, our server takes, whatever the arguments."""
    mirrored = mirror_parameters((REGION, SHARD, DRY), arguments)
    headers = {name.lower().encode(): value.encode() for name, value in mirrored.items()}
    assert check_parameters(headers, (REGION, SHARD, DRY), arguments) is None


@given(json_values, st.dictionaries(st.sampled_from([p.field for p in (REGION, SHARD, DRY)]), st.binary(max_size=40)))
def test_arbitrary_headers_raise_nothing_but_a_mismatch(arguments, headers):
    """A hostile peer can send anything beside anything."""
    with contextlib.suppress(HeaderMismatch):
        check_parameters(headers, (REGION, SHARD, DRY), arguments)


def test_what_was_compared_is_not_kept_if_it_is_large():
    """B3: what a peer puts around its values costs nothing for longer than its request."""
    calls = [("2026-07-28", "tools/call", f"tool-{number}") for number in range(300)]

    def check_all(padding: bytes) -> None:
        for revision, method, name in calls:
            said = (padding + text.encode() + padding for text in (revision, method, name))
            headers = dict(zip((PROTOCOL_VERSION, METHOD, NAME), said, strict=True))
            check_request(headers, protocol_version=revision, method=method, name=name)

    check_all(b"")
    tracemalloc.start()
    try:
        check_all(b" " * 50_000)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1_000_000
