# `make demo` and `make test` need Python 3.11 or later and make, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test check format lint types contracts bench report guard peers soak fuzz clean

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

# Minutes, not for CI: `make soak` takes three (or what MINUTES says), `make fuzz` some ten.
soak: $(STAMP)
	$(BIN)/python benchmarks/soak/run.py$(if $(MINUTES), --minutes $(MINUTES))

fuzz: $(STAMP)
	TWOFOLD_FUZZ_EXAMPLES=4000 $(BIN)/python -m pytest tests/fuzz

# What is measured against what: each peer as its own installer leaves it, and one environment that holds them all.
BENCH := $(VENV)/peers/bench
BENCHED := $(foreach peer,bench twofold mcp-2 fastmcp node/runtime node/server-2,$(VENV)/peers/$(peer)/.installed)

# ONLY names parts, with commas between several: make bench ONLY=client ROUNDS=1. JSON is where the figures go.
bench: $(BENCHED)
	$(BENCH)/bin/python benchmarks/run.py$(if $(ONLY), --only $(ONLY))$(if $(ROUNDS), --rounds $(ROUNDS))$(if $(JSON), --json $(JSON))

report: $(BENCH)/.installed
	$(BENCH)/bin/python benchmarks/report.py benchmarks/results/last.json

guard: $(BENCH)/.installed
	$(BENCH)/bin/python benchmarks/guard.py

peers: $(BENCHED)

$(VENV)/peers/node/%/.installed: requirements/node/%/package-lock.json
	@command -v npm > /dev/null || { echo "the peers of the benchmark need npm: install Node with npm" >&2; exit 1; }
	rm -rf $(@D)
	mkdir -p $(@D)
	cp requirements/node/$*/package.json $< $(@D)
	npm ci --prefix $(@D) $(if $(filter runtime,$*),--foreground-scripts,--ignore-scripts) --no-audit --no-fund --loglevel=error
	cp $< $@

$(VENV)/peers/%/.installed: requirements/%.txt
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	$(if $(filter bench twofold,$*),$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .)
	touch $@

$(STAMP): pyproject.toml requirements/dev.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Twofold needs Python 3.11 or later: make PYTHON=python3.11 …")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $(STAMP)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
