"""The run that the documents quote, as tests read it."""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
REFERENCE = BENCHMARKS / "results" / "reference.json"
DOCUMENTS = ROOT / "docs" / "explanation"


def read_reference() -> dict[str, Any]:
    return json.loads(REFERENCE.read_text())
