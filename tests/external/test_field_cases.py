"""Faults that broke other servers and clients in the field, each with the right behaviour, run against ours.

`TWOFOLD_CASES` names the folder with the cases and their driver.
"""

import os
import subprocess
import sys
from pathlib import Path

CASES = [
    "S01",
    "S02",
    "S04",
    "S05",
    "S06",
    "S08",
    "S09",
    "S13",
    "S14",
    "S15",
    "S16",
    "S18",
    "S19",
    "S21",
    "S22",
    "S24",
    "I01",
    "I03",
    "I05",
    "I06",
    "I07",
    "I09",
    "I11",
    "I12",
    "T01",
    "T02",
    "T04",
    "T05",
    "T07",
    "A01",
    "A04",
    "N01",
    "X01",
    "X02",
    "X04",
    "C02",
    "C03",
    "C06",
    "C08",
    "C09",
    "C10",
    "C11",
    "C14",
    "C15",
    "C16",
    "C17",
    "C18",
    "C19",
    "C21",
    "X05",
]


def test_every_field_case_is_right():
    """A1 to A26, B1 to B3, C1 to C7: what the cases name is right, and none of them was left out."""
    driver = Path(os.environ["TWOFOLD_CASES"]) / "_wire.py"
    command = [sys.executable, str(driver), "run", "twofold", *CASES]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    verdicts = [line.split(None, 2) for line in done.stdout.splitlines()]
    wrong = [verdict for verdict in verdicts if verdict[2:] != ["ok"]]
    assert wrong == [], done.stderr
    assert [verdict[0].split("_")[0] for verdict in verdicts] == sorted(CASES)
