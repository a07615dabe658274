# Everything that one does with this tree. `make` alone lists it.

VENV := .venv
BIN := $(VENV)/bin
# The first of these that is new enough makes the environment; `make install PYTHON=…` decides otherwise.
PYTHON ?= python3 python3.14 python3.13 python3.12 python3.11
# Passed on to what a target runs: make test ARGS="tests/guard -x", make up ARGS="--without planner"
ARGS ?=
# How many processes run the tests: one for each processor, and one, as they wait for others half of the time. JOBS=5 is
# quicker on two processors, and crowds what waits for leases.
PROCESSORS := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
JOBS ?= $(shell n=$$(( $(PROCESSORS) + 1 )); echo $$(( n < 8 ? n : 8 )))

# Byte code is kept, whatever the environment says: a cluster starts half a dozen processes, and the tests hundreds.
unexport PYTHONDONTWRITEBYTECODE
COMPILE := $(BIN)/python -m compileall -q agents gateways shared

# Stamps: pip runs again only when one of the two files below has changed since.
RUN := $(VENV)/.installed
DEV := $(VENV)/.installed-dev
PINS := pyproject.toml constraints.txt
# What is small enough to be brought to everybody; Claude Code is not.
EXTRAS := sandbox,openai,ag-ui,notify
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# Programs in an environment name the folder in which it was made: one that was moved or renamed is made anew.
MOVED := $(shell test -f $(VENV)/pyvenv.cfg && grep -q '^command = ' $(VENV)/pyvenv.cfg && \
    ! grep -qF " $(CURDIR)/$(VENV)" $(VENV)/pyvenv.cfg && echo yes)
ifeq ($(MOVED),yes)
.PHONY: $(VENV)/pyvenv.cfg
endif

.PHONY: help install up test test-claude-code check format attacks faults bench bench-tasks bench-peers docs pictures pins clean
.DEFAULT_GOAL := help

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18

install: $(DEV) ## make .venv with everything that development needs

up: $(RUN) ## run the cluster here, in the foreground; needs no key and no server
	@$(BIN)/promptdock up $(ARGS)

test: $(DEV) ## run all tests, and tell which take longest
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder --durations=25 --durations-min=3 $(ARGS)

test-claude-code: $(DEV) ## install Claude Code (168 MB) and run the tests that need it
	@$(PIP) --editable ".[dev,claude-code,$(EXTRAS)]"
	@$(BIN)/python -m pytest tests/executors $(ARGS)

check: $(DEV) ## format, lint, types, and which room may import which
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(DEV) ## put the code into the house's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

attacks: $(DEV) ## ten thousand hostile calls by fooled agents; ARGS="--calls 1000 --seed 7 --sandbox landlock"
	@$(BIN)/python -m tests.attacks $(ARGS)

faults: $(DEV) ## hurt a real cluster for hours; ARGS="--scale 0.05" for minutes, --list tells the rows
	@$(BIN)/python -m tests.faults $(ARGS)

bench: $(DEV) ## measure; ARGS=--quick is quicker, ARGS="bus turn" measures these parts
	@$(BIN)/python -m benchmarks $(ARGS)

bench-tasks: $(DEV) ## fifty tasks over five repositories by four workers; ARGS=--quick does twelve
	@$(BIN)/python -m benchmarks tasks $(ARGS)

bench-peers: $(DEV) ## the same beside other frameworks, each installed into the user's cache once
	@$(BIN)/python -m benchmarks.peers $(ARGS)

docs: $(DEV) ## write docs/tools.md from the registry of tools
	$(BIN)/python -m shared.tools.catalog > docs/tools.md.new && mv docs/tools.md.new docs/tools.md

pictures: $(DEV) ## make the pictures of docs/web.md, by a browser beside a demo cluster
	@$(BIN)/python -m pytest tests/web/browser/test_work.py -k "keyboard or pictures" --pictures docs/pictures

pins: $(DEV) ## resolve all libraries anew into constraints.txt
	rm -rf $(VENV)/fresh
	$(BIN)/python -m venv $(VENV)/fresh
	$(VENV)/fresh/bin/python -m pip install --quiet --disable-pip-version-check ".[dev,claude-code,$(EXTRAS)]"
	sed '/==[^;]*$$/d' constraints.txt > $(VENV)/pins
	$(VENV)/fresh/bin/python -m pip freeze --exclude promptdock >> $(VENV)/pins
	mv $(VENV)/pins constraints.txt
	rm -rf $(VENV)/fresh

clean: ## remove what these targets made; the data folder stays
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/pyvenv.cfg:
	@[ -z "$(MOVED)" ] || echo "This folder was moved or renamed: $(VENV) is made anew" >&2
	@for python in $(PYTHON); do \
	    "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
	    echo "Making an environment for $$("$$python" --version) in $(VENV) (once; some seconds)" >&2; \
	    "$$python" -m venv --clear $(VENV) && exit 0; \
	    rm -rf $(VENV); \
	    echo "$$python cannot make a virtual environment. On Debian and Ubuntu: apt-get install python3-venv" >&2; \
	    exit 1; \
	done; \
	echo "PromptDock needs Python 3.11 or newer, and none of these is: $(PYTHON)." >&2; \
	echo "Install one, or name it: make install PYTHON=/path/to/python3.12" >&2; \
	exit 1

$(RUN): $(VENV)/pyvenv.cfg $(PINS)
	@echo "Installing PromptDock into $(VENV) (once; a minute or so; needs the network)" >&2
	@$(PIP) --editable ".[$(EXTRAS)]"
	@$(COMPILE)
	@touch $@

$(DEV): $(VENV)/pyvenv.cfg $(PINS)
	@echo "Installing PromptDock and its development tools into $(VENV) (once; a minute or two; needs the network)" >&2
	@$(PIP) --editable ".[dev,$(EXTRAS)]"
	@$(COMPILE)
	@touch $(RUN) $@
