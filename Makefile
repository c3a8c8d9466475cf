# Two commands for a fresh clone: `make serve` and `make test`. Both make the environment first.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: serve test lint lock bench clean

serve: $(VENV)/.serve
	$(BIN)/hubctl serve

test: $(VENV)/.test
	sh tests/install-tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pytest

$(VENV)/.serve: pyproject.toml requirements.lock
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -e .
	touch $@

$(VENV)/.test: $(VENV)/.serve
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -e '.[test]'
	touch $@

# The versions that CI uses, from what the floors in pyproject.toml resolve to today.
lock:
	rm -rf build/lock && $(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet --disable-pip-version-check -e '.[test,bench]'
	build/lock/bin/python -m pip freeze --exclude-editable --exclude pip > requirements.lock
	rm -rf build/lock

bench: $(VENV)/.serve
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -e '.[bench]'
	for script in bench/bench_*.py; do $(BIN)/python $$script || exit 1; done

clean:
	rm -rf $(VENV) build var site_out/*
