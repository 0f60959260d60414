# Two commands do everything on a machine with python3, pip and make:
#   make run    sets up the package and tells the whole story on real data, into the folder stakes-demo
#   make test   sets up all tools beside it and runs every check
# A third runs the paper's experiments again, for hours, and a fourth the tests that need large libraries:
#   make reproduce
# make docs builds the site into build/site, make dist the package into dist.
#   make integrations
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# The second environment of make test: the base dependencies alone. Their lowest versions have wheels for Python 3.11;
# a later Python takes the newest that are allowed.
BASE ?= .venv-base
LOWEST := constraints-lowest.txt

.PHONY: run test check test-all test-base browser integrations reproduce docs dist setup clean

run: $(VENV)/.package
	rm -rf stakes-demo
	$(BIN)/stakes demo stakes-demo

# What waits for a network or keeps one core busy is done at once, then the tests, which keep all busy.
test: setup
	$(MAKE) --jobs=3 check browser $(BASE)/.ready
	$(MAKE) test-all
	$(MAKE) test-base

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Tests of the base dependencies are left to test-base.
test-all: setup browser
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto --dist worksteal --ignore tests/base

# The package as it would be installed, in an environment that has nothing but what it asks for, and pytest.
test-base: setup $(BASE)/.ready
	$(BIN)/python tools/check_package.py dist
	$(BASE)/bin/python -m pip install --quiet --no-deps --force-reinstall dist/*.whl
	OMP_NUM_THREADS=1 $(BASE)/bin/python -m pytest tests/base

# What the tests of stakes label need beside Python: Debian's Chromium, where it may be installed, and axe-core, which
# checks accessibility, where there is npm. Without them those tests are skipped, and say so.
browser: setup
	@if ! command -v chromium > /dev/null && command -v apt-get > /dev/null && [ "$$(id -u)" = 0 ]; then \
		apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium > /dev/null || true; \
	fi
	@if command -v npm > /dev/null && [ ! -e $(VENV)/axe ]; then \
		npm install --silent --no-save --no-audit --no-fund --prefix $(VENV)/axe axe-core || true; \
	fi
	@command -v chromium > /dev/null || echo "No Chromium: tests of stakes label in a browser are skipped (apt-get install chromium)"

# Libraries that are too large for every make test, an environment for each: the package, pytest and the dependency group
# integration-NAME of pyproject.toml. Elsewhere their tests are skipped. The tests of NAME are tests/integrations/test_NAME.py,
# or TESTS_NAME. To add one: its group, a word here, a word in .github/workflows/test.yml (tests/integrations compares them).
INTEGRATIONS := catboost datasets ngboost notebooks numpyro pymc records s3 tabicl tabpfn
TESTS_catboost := tests/models/test_labelled_estimators.py tests/models/test_virtual_ensembles.py
TESTS_records := tests/integrations/test_records.py tests/integrations/test_mlflow.py tests/integrations/test_wandb.py

integrations: $(INTEGRATIONS:%=integration-%)
.PHONY: $(INTEGRATIONS:%=integration-%)

$(INTEGRATIONS:%=integration-%): integration-%: .venv-integration-%/.ready
	OMP_NUM_THREADS=1 STAKES_INTEGRATION=$* .venv-integration-$*/bin/python -m pytest $(or $(TESTS_$*),tests/integrations/test_$*.py)

$(INTEGRATIONS:%=.venv-integration-%/.ready): .venv-integration-%/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-integration-$*
	.venv-integration-$*/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	.venv-integration-$*/bin/python -m pip install --quiet --group integration-$* --editable .
	touch $@

# The site, from nothing: warnings are errors, nothing is fetched but the tools that build it.
docs: $(VENV)/.docs
	rm -rf build/site
	MPLBACKEND=agg OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -b html docs build/site
	@echo "The site is in build/site: open build/site/index.html"

$(VENV)/.docs: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --group docs
	touch $@

# The wheel and the source archive, each installed in an empty environment and tried.
dist: setup
	$(BIN)/python tools/check_package.py dist
	$(BIN)/python tools/try_package.py dist

reproduce: setup
	$(BIN)/python -m experiments all

setup: $(VENV)/.ready

# The package and its pictures: a minute, where torch and all tools take several.
$(VENV)/.package: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[plot]"
	touch $@

# The package is named again, so that the versions of all are found together.
$(VENV)/.ready: $(VENV)/.package
	$(BIN)/python -m pip install --quiet --editable ".[plot]" --group dev
	touch $@

$(BASE)/.ready: pyproject.toml $(LOWEST)
	rm -rf $(BASE)
	$(PYTHON) -m venv $(BASE)
	$(BASE)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	if $(BASE)/bin/python -c "import sys; sys.exit(sys.version_info[:2] != (3, 11))"; then \
		$(BASE)/bin/python -m pip install --quiet --constraint $(LOWEST) . --group base; \
	else \
		echo "$(LOWEST) is for Python 3.11: the newest versions are taken in place of the lowest"; \
		$(BASE)/bin/python -m pip install --quiet . --group base; \
	fi
	touch $@

clean:
	rm -rf $(VENV) $(BASE) .venv-integration-* dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
