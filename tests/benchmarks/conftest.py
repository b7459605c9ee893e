"""Lets the tests import the programs of `benchmarks/`, which find each other as scripts do: in their own folder."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
