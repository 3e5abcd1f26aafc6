# Every target sets up what it needs in .venv; nothing else has to be installed but Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: help demo test lint types imports unit bench setup clean

help:
	@echo "make demo    schedule the example platform in memory and print what came of it"
	@echo "make test    lint, types, import rules and tests"
	@echo "make bench   the measured scenarios (SCENARIOS='A B' for some of them)"
	@echo "make clean   remove the virtual environment and caches"

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

bench: setup
	$(BIN)/vcscheduler bench $(SCENARIOS)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
