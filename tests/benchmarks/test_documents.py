"""The page, the chart and the README show the figures of the committed run, and nothing typed by hand."""

import json
import os
import re
import struct
import subprocess
import sys
import zlib

import bars
import page
import pytest
import run
from aims import AIMS, judge
from figures import median, ratios

from tests.benchmarks.reference import DOCUMENTS, ROOT, read_reference

PAGE = DOCUMENTS / "performance.md"


def png_texts(path) -> dict[str, str]:
    """The texts that a PNG carries beside its picture (PNG specification, `tEXt`)."""
    data, at, texts = path.read_bytes(), 8, {}
    while at < len(data):
        (length,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length]) == (zlib.crc32(kind + body),)
        if kind == b"tEXt":
            name, _, text = body.partition(b"\0")
            texts[name.decode()] = text.decode("latin-1")
        at += 12 + length
    return texts


def test_the_tables_of_the_page_are_those_of_the_committed_run():
    """`make report` writes them; nobody edits them."""
    text = PAGE.read_text()
    assert page.write_tables(text, read_reference()) == text


def test_the_page_has_a_table_of_every_layer_and_of_the_aims():
    named = re.findall(r"<!-- figures: (\w+) -->", PAGE.read_text())
    layers = set(read_reference()["figures"])
    assert set(named) == {"about", "aims", "latency_stdio_32", "latency_http_32"} | layers
    assert len(named) == len(set(named))


def test_a_table_shows_medians_of_the_ratios_of_rounds():
    """The int at 32 connections, worked out by hand from the committed run."""
    rows = read_reference()["figures"]["http_32"]["integer"]
    times = sorted(their / our for our, their in zip(rows["twofold"]["cpu_us"], rows["mcp"]["cpu_us"], strict=True))
    assert len(times) == read_reference()["about"]["rounds"]
    middle = times[len(times) // 2]
    shown = f"{middle:.0f}" if middle >= 20 else f"{middle:.1f}"
    (line,) = [
        line for line in PAGE.read_text().split("\n32 connections:\n")[1].splitlines() if line.startswith("| an int | ")
    ][:1]
    assert f": {shown}× (" in line.split(" | ")[2]


def test_the_numbers_of_the_chart_are_those_of_the_committed_run():
    """SVG as text, and what the PNG says it shows."""
    expected = bars.labels(read_reference()["figures"])
    numbers = re.findall(r">([\d.]+×)</text>", PAGE.with_suffix(".svg").read_text())
    axis = {"1×", "10×", "100×"}
    assert [text for text in numbers if text not in axis] == [text for text in expected if text not in axis]
    assert len(numbers) == len(expected) + len(bars.PANELS) * len(axis)
    assert json.loads(png_texts(PAGE.with_suffix(".png"))["Description"]) == expected


def test_the_chart_carries_no_time_of_its_making():
    """So the same figures give the same file."""
    assert "date" not in PAGE.with_suffix(".svg").read_text().lower()
    assert "Creation Time" not in png_texts(PAGE.with_suffix(".png"))


def test_the_readme_shows_the_chart_and_how_to_make_it_anew():
    text = (ROOT / "README.md").read_text()
    assert "](docs/explanation/performance.svg)" in text
    assert "`make bench`" in text


def test_every_aim_was_measured_against_every_peer():
    """The committed run is a whole one."""
    run = read_reference()
    assert len(list(judge(run["figures"]))) == len(AIMS)
    assert set(run["about"]["peers"]) == {"mcp", "fastmcp", "typescript"}
    assert {"mcp", "fastmcp", "typescript", "floor"} <= set(run["figures"]["stdio_32"]["integer"])


def test_a_marker_that_names_nothing_is_an_error():
    with pytest.raises(ValueError, match="nothing_of_the_kind"):
        page.write_tables("<!-- figures: nothing_of_the_kind -->\n<!-- end of figures -->\n", read_reference())


def test_ratios_of_unequal_rounds_are_refused():
    """They would not have been measured side by side."""
    assert median(ratios([2.0, 9.0, 4.0], [1.0, 3.0, 1.0])) == 3.0
    with pytest.raises(ValueError, match="zip"):
        ratios([1.0], [1.0, 2.0])


def test_a_part_of_the_benchmark_is_a_matter_of_make():
    """What the page says for a part: `make bench ONLY=client ROUNDS=1` hands both on."""
    assert "make bench ONLY=client ROUNDS=1 " in PAGE.read_text()
    environment = {name: text for name, text in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "--dry-run", "bench", "ONLY=client", "ROUNDS=1"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == ".venv/peers/bench/bin/python benchmarks/run.py --only client --rounds 1"


def test_the_page_names_the_parts_and_the_short_names_of_the_payloads():
    """Whoever wants a part, or reads what a run prints, finds both."""
    (sentence,) = re.findall(r"^The parts are ((?:[^.])*)\.", PAGE.read_text(), re.MULTILINE)
    assert re.findall(r"`([a-z-]+)`", sentence) == list(run.PARTS)
    (names,) = re.findall(
        r"short names for the\s+payloads: ([^.]*)\.[^0-9]", PAGE.read_text().replace("0.9 MB", "0-9 MB")
    )
    assert set(re.findall(r"`([a-z]+)`", names)) == set(read_reference()["figures"]["http_1"])


def test_another_python_is_told_what_to_say():
    """The benchmark's own environment is there after `make peers` only, and the message says so."""
    done = subprocess.run([sys.executable, "benchmarks/run.py"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "this Python has not what is measured: say `make bench`, a part of it `make bench ONLY=client ROUNDS=1`; or after "
        f"`make peers`, which installs it: {ROOT / '.venv/peers/bench/bin/python'} benchmarks/run.py\n"
    )
