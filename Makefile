# Each target sets up what it needs: only make and Python 3.11 or newer have to be there.
#   make demo      fit models to built-in tables, print what was found, write pictures and a report
#   make test      the quick tests and every example in a docstring: what a change has to pass
#   make test-all  all tests, the long ones too: what a release has to pass
#   make lint      ruff, mypy, import-linter
#   make docs      the documentation in docs/_build/html, with every example run and every link checked
#   make bench     time and memory against scikit-learn and oneDAL, in the same run
#   make clean     remove the environment and everything that was built
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet --quiet
# For example: make test PYTEST_ARGS="tests/engine -x"; the order of the tests is random, and
# PYTEST_ARGS="--randomly-seed=17" repeats the order of a run.
PYTEST_ARGS ?=
PYTEST      := $(BIN)/python -m pytest -n logical --maxprocesses 8
BENCH_ARGS  ?=

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint docs bench clean
.DELETE_ON_ERROR:

help:
	@sed -n 's/^#   //p' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/.core
	@$(BIN)/mixfold demo

# Workers share the rewritten assertions of the test files, which Python may have been told not to keep.
test test-all: export PYTHONDONTWRITEBYTECODE =

test: $(VENV)/.dev
	$(PYTEST) -m "not slow" $(PYTEST_ARGS)

test-all: $(VENV)/.dev
	$(PYTEST) $(PYTEST_ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html
	$(BIN)/python docs/check_site.py docs/_build/html
	@echo "Open docs/_build/html/index.html"

bench: $(VENV)/.bench
	$(BIN)/python -m bench $(BENCH_ARGS)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	rm -rf docs/_build docs/gallery docs/generated
	rm -f mixfold-demo-*.png mixfold-demo-*.html mixfold-demo-*.csv
	find src tests papers tools bench -name __pycache__ -prune -exec rm -rf {} +

# A stamp is as new as the pyproject.toml it was installed from, and stands for a finished install.
$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "mixfold needs Python 3.11 or newer; '$(PYTHON) --version' says: $$($(PYTHON) --version 2>&1)" >&2; \
	  echo "Name another one, for example: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@echo "Setting up $(VENV) (once) ..."
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "Could not create $(VENV). On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@touch $@

$(VENV)/.core: pyproject.toml | $(VENV)/.created
	@echo "Installing mixfold (a minute or so) ..."
	@$(PIP) --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.created
	@echo "Installing mixfold and the tools that check it (a minute or two) ..."
	@$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.core

$(VENV)/.docs: pyproject.toml | $(VENV)/.created
	@echo "Installing mixfold and what builds its documentation (a minute or two) ..."
	@$(PIP) --editable '.[docs]'
	@touch $@ $(VENV)/.core

$(VENV)/.bench: pyproject.toml | $(VENV)/.created
	@echo "Installing mixfold and the peers it is measured against (a minute or two) ..."
	@$(PIP) --editable '.[bench]'
	@touch $@ $(VENV)/.core
