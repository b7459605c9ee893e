"""The demo: it plays to its end, and notices when something is not as it should be."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def play(folder: Path) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, str(folder / "demo.py")], capture_output=True, text=True, check=False, timeout=60
    )
    return done.returncode, done.stdout + done.stderr


def test_the_demo_shows_every_scene_and_ends_with_0():
    """Listing, both faces, progress, a refused argument, a broken promise, the earlier era."""
    code, text = play(EXAMPLES)
    assert code == 0, text
    for scene in (
        "What the server offers", "read-only", "3 products, from 9.5 to 38.0 USD.", "progress 3 of 3: booked Tea pot",
        "did you mean 'query'?", "Error executing tool supplier_quote: 1 validation error", "revision 2025-11-25", "Every answer was what it should be.",
    ):  # fmt: skip
        assert scene in text


def test_the_demo_fails_when_an_answer_is_wrong(tmp_path):
    """A demo that cannot fail shows nothing: with another price, or a server that dies, the exit code is 1."""
    (tmp_path / "demo.py").write_text((EXAMPLES / "demo.py").read_text())
    catalogue = (EXAMPLES / "catalogue.py").read_text()
    (tmp_path / "catalogue.py").write_text(catalogue.replace("price=24,", "price=25,"))
    code, text = play(tmp_path)
    assert code == 1
    assert "Not as it should be: details: expected {'name': 'Travel mug', 'price': 24.0, 'stock': 12}" in text
    (tmp_path / "catalogue.py").write_text("raise SystemExit(3)")
    code, text = play(tmp_path)
    assert code == 1
    assert "Not as it should be: server" in text
    assert "exit code 3" in " ".join(text.split())
