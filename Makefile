# Two commands for a fresh clone: `make serve` and `make test`. Both make the environment first.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# From a lock comes nothing whose hash is not in it. The project has no hash, and its build backend
# is in the lock.
LOCKED := $(PIP) --require-hashes --requirement
PROJECT := $(PIP) --no-deps --no-build-isolation --editable .

.PHONY: serve test lint lock bench clean

serve: $(VENV)/.serve
	$(BIN)/hubctl serve $(if $(PORT),--port $(PORT))

test: $(VENV)/.test
	sh tests/install-tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder

$(VENV)/.serve: pyproject.toml requirements.lock
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(LOCKED) requirements.lock
	$(PROJECT)
	touch $@

$(VENV)/.test: $(VENV)/.serve tests/requirements.lock
	$(LOCKED) tests/requirements.lock
	touch $@

# Pin every dependency and the hashes of all its files, for any platform and Python from 3.11 on.
# Pinned versions stay as long as pyproject.toml allows; `make lock UPGRADE=--upgrade` takes the
# newest ones.
COMPILE = build/lock/bin/uv pip compile --quiet --universal --python-version 3.11 \
	--generate-hashes --no-annotate --no-emit-index-url --no-emit-find-links \
	--custom-compile-command 'make lock' $(UPGRADE) pyproject.toml

lock:
	rm -rf build/lock && $(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
		> build/lock/backend.txt
	$(COMPILE) build/lock/backend.txt --output-file requirements.lock
	$(COMPILE) --extra test --constraint requirements.lock --output-file tests/requirements.lock
	$(COMPILE) --extra bench --constraint requirements.lock --output-file bench/requirements.lock
	rm -rf build/lock

bench: $(VENV)/.serve build/mlflow
	sh tests/install-tools
	$(LOCKED) bench/requirements.lock
	for script in $(filter-out bench/bench_publish.py,$(wildcard bench/bench_*.py)); do \
		$(BIN)/python $$script || exit 1; done
	$(BIN)/python bench/bench_publish.py --mlflow build/mlflow/bin/python

# What publishing is compared with, in an environment of its own: it brings a hundred libraries.
build/mlflow:
	$(PYTHON) -m venv $@
	$@/bin/python -m pip install --quiet --disable-pip-version-check 'mlflow>=3' || { rm -rf $@; exit 1; }

clean:
	rm -rf $(VENV) build var site_out/* tests/node/node_modules
