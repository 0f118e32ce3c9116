# Two commands do everything on a fresh machine: `make demo` and `make test`.
# They need Python 3.11-3.13 with venv, git and a C compiler; everything else goes into .venv.

PYTHON ?= python3
VENV := .venv
VENV_TRL := .venv-trl
BIN := $(VENV)/bin
C_SOURCES := $(wildcard gymsuite/sandbox/exec_server/*.[ch])

.PHONY: demo test test-trl lint format benchmarks clean

demo: $(VENV)/.installed
	$(BIN)/gymsuite demo

test: lint
	$(BIN)/python -m pytest

# The trainers have an environment of their own: torch alone is larger than all of the suite.
test-trl: $(VENV_TRL)/.installed
	OMP_NUM_THREADS=1 $(VENV_TRL)/bin/python -m pytest tests/trl

lint: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(VENV)/.installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

benchmarks: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/core.py
	$(BIN)/python benchmarks/sandboxes.py

clean:
	rm -rf $(VENV) $(VENV_TRL) dist build gymsuite/sandbox/bin

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' \
	  || { echo "gymsuite needs Python 3.11, 3.12 or 3.13; name one: make PYTHON=python3.12 ..."; exit 2; }
	@$(PYTHON) -m venv $(VENV) \
	  || { echo "python -m venv failed; on Debian or Ubuntu: apt-get install python3-venv"; exit 2; }

$(VENV)/.installed: $(BIN)/python pyproject.toml hatch_build.py $(C_SOURCES)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev,fast]"
	@touch $@

$(VENV_TRL)/.installed: tests/trl/requirements.txt pyproject.toml hatch_build.py $(C_SOURCES)
	$(PYTHON) -m venv $(VENV_TRL)
	$(VENV_TRL)/bin/python -m pip install --quiet --disable-pip-version-check \
	  --requirement tests/trl/requirements.txt --editable .
	@touch $@
