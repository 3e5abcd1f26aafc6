# Every target sets up what it needs in .venv; nothing else has to be installed but Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: help demo test test-live soak lint types imports unit bench bench-live setup clean

help:
	@echo "make demo       schedule the example platform in memory and print what came of it"
	@echo "make test       lint, types, import rules and tests"
	@echo "make test-live  tests against a real API server (needs Go, or its programs in KUBEBUILDER_ASSETS)"
	@echo "make soak       the live test of faults, five times as long"
	@echo "make bench      the measured scenarios (SCENARIOS='A B' for some of them)"
	@echo "make bench-live  a scheduler on a real API server beside the server's own limit (BENCH='-o json')"
	@echo "make clean      remove the virtual environment and caches"

$(INSTALLED): pyproject.toml
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("vcscheduler needs Python 3.11 or newer, this is " + sys.version.split()[0])'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

setup: $(INSTALLED)

demo: setup
	$(BIN)/vcscheduler simulate examples/platform

test: setup lint types imports unit

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

imports: setup
	$(BIN)/lint-imports

unit: setup
	$(BIN)/pytest -n auto

# Against a real API server, found by KUBEBUILDER_ASSETS or built with Go; without either it says so and skips.
# Four processes and their time-outs share the machine with whatever else runs there, so what fails is tried once more.
test-live: setup
	@tools=$$($(BIN)/python tests/live/tools.py); status=$$?; \
	if [ $$status -eq 3 ]; then echo "live tests are skipped"; exit 0; fi; \
	if [ $$status -ne 0 ]; then exit $$status; fi; \
	export KUBEBUILDER_ASSETS=$$tools VCSCHEDULER_LIVE=1; \
	$(BIN)/pytest tests/live $(LIVE_TESTS) || $(BIN)/pytest tests/live $(LIVE_TESTS) --last-failed --last-failed-no-failures none

soak:
	VCSCHEDULER_FAULTS=10000 $(MAKE) test-live LIVE_TESTS="-k faults -s"

bench: setup
	$(BIN)/vcscheduler bench $(SCENARIOS)

bench-live: setup
	@tools=$$($(BIN)/python tests/live/tools.py) || exit $$?; \
	KUBEBUILDER_ASSETS=$$tools PYTHONPATH=tests $(BIN)/python -m live.bench $(BENCH)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
