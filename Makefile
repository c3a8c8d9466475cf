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
	$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder

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

bench: $(VENV)/.serve build/mlflow
	sh tests/install-tools
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -e '.[bench]'
	for script in $(filter-out bench/bench_publish.py,$(wildcard bench/bench_*.py)); do \
		$(BIN)/python $$script || exit 1; done
	$(BIN)/python bench/bench_publish.py --mlflow build/mlflow/bin/python

# What publishing is compared with, in an environment of its own: it brings a hundred libraries.
build/mlflow:
	$(PYTHON) -m venv $@
	$@/bin/python -m pip install --quiet --disable-pip-version-check 'mlflow>=3' || { rm -rf $@; exit 1; }

clean:
	rm -rf $(VENV) build var site_out/* tests/node/node_modules
