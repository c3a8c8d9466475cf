# Two commands for a fresh clone: `make serve` and `make test`. Both create the environment first.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Installs only packages whose hashes are in the lock. uv takes seconds where pip takes a minute. If uv
# is missing, or its index lacks a package, pip does the same. The project itself has no hash; its build
# backend is in the lock.
define install
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes --requirement $(1) || \
		$(PIP) --require-hashes --requirement $(1)
endef

# With this set, each of the hundreds of processes that tests start would compile the project again.
unexport PYTHONDONTWRITEBYTECODE

# Tests run in several processes at a time, the longest first: one for each folder of tests/ that
# tests/durations.txt names, and `others` for the rest. A process with few tests collects less and forks
# faster than one with all.
parts_of = $(shell awk '$$1 == "$(1)" && !seen[$$2]++ { print $$2 }' tests/durations.txt)
SHORT := $(call parts_of,short)
REST := $(call parts_of,rest)
others = tests $(patsubst %,--ignore tests/%,$(filter-out others,$(1)))
folder = tests/$(1) $(patsubst %,--ignore tests/%,$(filter $(1)/%,$(2)))
parts = $(MAKE) --jobs 4 --output-sync --keep-going
PYTEST = $(BIN)/pytest --junitxml build/durations/$@.xml -m
# Each commit runs one quarter of the cases of long proofs, by its hash, so commits take turns.
# TEST_QUARTER=2 runs the cases of another commit again; TEST_QUARTER= runs all.
TEST_QUARTER ?= $(shell echo $$((0x$$(git rev-parse HEAD 2>/dev/null | cut -c 1-8 | grep . || echo 0) % 4)))
export TEST_QUARTER

.PHONY: serve dist test test-all test-deep short/others rest/others lock bench tools clean

serve: $(VENV)/.serve
	$(BIN)/hubctl serve $(if $(PORT),--port $(PORT))

# The wheel is built from the source distribution, which shows that this is complete.
dist: $(VENV)/.serve
	rm -rf dist
	$(BIN)/python -c 'from setuptools import build_meta; build_meta.build_sdist("dist")'
	$(BIN)/python -m pip --disable-pip-version-check wheel --quiet --no-deps --no-build-isolation \
		--wheel-dir dist dist/*.tar.gz

# The tests that need only Python, git and make.
test: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(parts) $(SHORT:%=short/%) short/others

# Also the tests that need other programs, for which this may ask for root. While these are downloaded,
# the tests of `make test` run.
test-all: $(VENV)/.test
	rm -rf build/durations
	sh tests/install-tools & tools=$$!; $(MAKE) test; passed=$$?; wait $$tools && exit $$passed
	$(parts) $(REST:%=rest/%) rest/others

# All cases of all tests, with random examples that no run has tried before.
test-deep:
	HYPOTHESIS_PROFILE=deep $(MAKE) test-all TEST_QUARTER=

short/others:
	$(PYTEST) 'not tools' $(call others,$(SHORT))

short/%:
	$(PYTEST) 'not tools' $(call folder,$*,$(SHORT))

rest/others:
	$(PYTEST) tools $(call others,$(REST))

rest/%:
	$(PYTEST) tools $(call folder,$*,$(REST))

$(VENV)/.serve: pyproject.toml requirements.lock installer.lock
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	-$(PIP) --require-hashes --requirement installer.lock
	$(call install,requirements.lock)
	$(PIP) --no-deps --no-build-isolation --editable .
	touch $@

$(VENV)/.test: $(VENV)/.serve tests/requirements.lock
	$(call install,tests/requirements.lock)
	touch $@

# Pin every dependency and the hashes of all its files, for any platform and Python from 3.11 on.
# Pinned versions stay as long as pyproject.toml allows; `make lock UPGRADE=--upgrade` takes the
# newest ones.
COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
	--generate-hashes --no-annotate --no-emit-index-url --no-emit-find-links \
	--custom-compile-command 'make lock' $(UPGRADE)

lock: $(VENV)/.serve
	mkdir -p build
	$(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
		> build/backend.txt
	echo uv | $(COMPILE) - --output-file installer.lock
	$(COMPILE) pyproject.toml build/backend.txt --extra s3 --extra nodes --output-file requirements.lock
	$(COMPILE) pyproject.toml --extra test --constraint requirements.lock --output-file tests/requirements.lock
	for version in 2 3 4 5; do \
		echo "langfuse~=$$version.0" | $(COMPILE) - --output-file tests/langfuse/requirements-$$version.txt || exit 1; \
	done
	$(COMPILE) pyproject.toml --extra bench --constraint requirements.lock --output-file bench/requirements.lock

bench: $(VENV)/.test tools build/mlflow build/lighthouse
	$(call install,bench/requirements.lock)
	for script in $(filter-out bench/bench_publish.py bench/bench_versions.py,$(wildcard bench/bench_*.py)); do \
		$(BIN)/python $$script || exit 1; done
	$(BIN)/python bench/bench_publish.py --mlflow build/mlflow/bin/python

tools:
	sh tests/install-tools

# MLflow, with which publishing is compared. It has an environment of its own, because it brings a hundred
# libraries.
build/mlflow:
	$(PYTHON) -m venv $@
	$@/bin/python -m pip install --quiet --disable-pip-version-check 'mlflow>=3' || { rm -rf $@; exit 1; }

build/lighthouse: | tools
	npm install --prefix $@ --no-audit --no-fund --loglevel error lighthouse@13.5.0 || { rm -rf $@; exit 1; }

clean:
	rm -rf $(VENV) build dist var site_out/* tests/node/node_modules
