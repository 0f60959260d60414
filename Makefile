# Two commands do everything on a machine with python3, pip and make:
#   make run    sets up and tells the whole story on real data, into the folder stakes-demo
#   make test   sets up and runs every check
# and a third runs the paper's experiments again, for hours:
#   make reproduce
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: run test reproduce setup clean

run: setup
	rm -rf stakes-demo
	$(BIN)/stakes demo stakes-demo

test: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto

reproduce: setup
	$(BIN)/python -m experiments all

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[plot]" --group dev
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
