# `make demo` and `make test` need Python 3.11 or later and make, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test check format lint types contracts bench soak fuzz clean

demo: $(STAMP)
	$(BIN)/python examples/demo.py

test: $(STAMP)
	$(BIN)/python -m pytest

check: format lint types contracts test

format: $(STAMP)
	$(BIN)/ruff format --check .

lint: $(STAMP)
	$(BIN)/ruff check .

types: $(STAMP)
	$(BIN)/mypy

contracts: $(STAMP)
	$(BIN)/lint-imports

# Minutes, not for CI: `make soak` takes three, `make fuzz` some ten.
soak: $(STAMP)
	$(BIN)/python benchmarks/soak/run.py

fuzz: $(STAMP)
	TWOFOLD_FUZZ_EXAMPLES=4000 $(BIN)/python -m pytest tests/fuzz

bench: $(STAMP) $(VENV)/peers/bench/.installed
	$(VENV)/peers/bench/bin/python benchmarks/run.py

$(VENV)/peers/bench/.installed: requirements/dev.txt requirements/mcp-2.txt
	$(PYTHON) -m venv $(VENV)/peers/bench
	$(VENV)/peers/bench/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt -r requirements/mcp-2.txt
	$(VENV)/peers/bench/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

$(STAMP): pyproject.toml requirements/dev.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Twofold needs Python 3.11 or later: make PYTHON=python3.11 …")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $(STAMP)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
