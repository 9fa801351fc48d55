PYTHON ?= python3
BIN := .venv/bin
SOURCES := $(shell find askback -name '*.py' -o -name py.typed) pytest_askback.py

.PHONY: setup demo test quick lint bench docs constraints clean

setup: .venv/ready

# Everything for development, in the versions of constraints.txt.
.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "askback needs Python 3.11 or newer; try make PYTHON=python3.12")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[all]' --group dev
	touch $@

# With a real model: make demo MODEL=provider:name
demo: .venv/ready
	@$(BIN)/python -m examples.demo $(if $(MODEL),--model $(MODEL))

# Everything, with coverage. The wheel comes last, so that failing tests show first.
test: .venv/ready
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage report
	@$(MAKE) --no-print-directory .venv/wheel-checked

# For the inner loop: all but the tests that start processes.
quick: .venv/ready
	$(BIN)/python -m pytest -m "not processes"

# The wheel alone, with each extra, in an environment that has nothing else.
.venv/wheel-checked: .venv/ready tests/check_wheel.py README.md LICENSE $(SOURCES)
	$(BIN)/python tests/check_wheel.py
	touch $@

lint: .venv/ready
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/pyright

# The site, in site/.
docs: .venv/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

bench: .venv/ready
	$(BIN)/python -m benchmarks.engine
	$(BIN)/python -m benchmarks.toolset
	$(BIN)/python -m benchmarks.waiting

# Write the installed versions to constraints.txt, for everyone else.
constraints: .venv/ready
	$(BIN)/python -m pip freeze --exclude-editable --all > constraints.txt

clean:
	rm -rf .venv dist site .coverage
