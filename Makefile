# `make help` explains itself. Everything sets itself up: a fresh clone needs only Python 3.11+, git and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
JOBS   ?= 5
STAMP  := $(VENV)/.installed
PROGRAM := $(VENV)/.program

# Compiled code is kept, whatever the shell wants: a test process would compile all tests, each program the whole source.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: audit bandit docs help install program demo test check lint types format import up bench-import bench-migration bench-drain bench-outage bench-parse clean bench-looking bench-web browser-full screenshots year
.PHONY: all-counties bench bench-harvest bench-saved bench-flow-sites bench-growth bench-hosts bench-hostile fuzz fuzz-lists
.PHONY: chaos
.PHONY: deps layers dev hooks site lint-containers man build test-minimum test-repeat

help:  ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

program: $(PROGRAM)  ## Set up .venv with the program in .venv/bin/lienworker, and nothing else

install: $(STAMP)  ## The same with everything that a developer needs

# The program alone: a first look needs no linters, browsers and documentation.
$(PROGRAM): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; say which one with: make PYTHON=python3.12"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(STAMP): $(PROGRAM)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(PROGRAM)  ## Run the main job on the bundled demo county
	$(BIN)/lienworker demo

# First what measures time or load, and leaves all tests compiled; then what may run side by side, for most of it waits.
test: install  ## Run all tests
	$(BIN)/python -m pytest -m alone
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not alone"

TIMES ?= 10
test-repeat: install  ## Run all tests again and again, every second time beside a busy core: make test-repeat TIMES=10
	$(BIN)/python -m tests.repeat --times $(TIMES) --jobs $(JOBS)

# What needs one core goes two at a time; the tests share out the machine themselves.
check: install  ## What CI runs: linters, types, layers, dependencies, bandit, documentation, tests
	$(MAKE) --jobs=2 lint lint-containers types layers deps bandit site
	$(MAKE) test

lint: install  ## Check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

lint-containers: install  ## Check compose.yaml against its specification, and the Dockerfile
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec compose.yaml compose.bind.yaml
	$(BIN)/hadolint Dockerfile

man: install  ## Make the manual pages in build/man
	$(BIN)/python -m lienworker.cli.manual build/man

build: install  ## Build wheel and source archive in dist/
	$(BIN)/uv build --quiet --out-dir dist

# uv trusts the machine's certificates, as pip does: some networks have their own.
export UV_SYSTEM_CERTS ?= true
export UV_NATIVE_TLS ?= true

# The lowest versions that pyproject.toml allows, in an environment of their own.
test-minimum: install  ## Run the quick tests and the demo with the lowest allowed versions
	@mkdir -p build
	$(BIN)/uv pip compile --quiet --resolution lowest-direct --no-annotate --no-header pyproject.toml -o build/minimum.txt
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python build/minimum
	$(BIN)/uv pip install --quiet --python build/minimum/bin/python -r build/minimum.txt -c build/minimum.txt \
	  pytest pytest-timeout pytest-xdist hypothesis
	$(BIN)/uv pip install --quiet --no-deps --python build/minimum/bin/python -e .
	build/minimum/bin/lienworker demo
	build/minimum/bin/python -m pytest -n $(JOBS) -m "not slow and not alone" tests/db tests/store tests/outbox tests/hubs tests/testing \
	  tests/fetching tests/intake tests/platforms tests/steps tests/maintenance tests/operator tests/queries

site: install  ## Build the documentation in build/site; a broken link is an error
	$(BIN)/sphinx-build --quiet --fail-on-warning --nitpicky docs build/site

types: install  ## Check types
	$(BIN)/mypy

layers: install  ## Check that no room imports what is above it
	$(BIN)/lint-imports --no-cache

deps: install  ## Check that what is imported is declared, and the other way around
	$(BIN)/deptry .

bandit: install  ## Look for what attackers like
	$(BIN)/bandit -q -r lienworker -c pyproject.toml

audit: install  ## Ask the advisory service about every dependency; fails where it cannot be asked
	$(BIN)/python .ci/audit

format: install  ## Put the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

import: $(PROGRAM)  ## Import parcels: make import FILE=parcels.jsonl
	@test -n "$(FILE)" || { echo "Say which file: make import FILE=parcels.jsonl"; exit 2; }
	$(BIN)/lienworker import "$(FILE)"

up: $(PROGRAM)  ## Run the whole stack in the foreground, until Ctrl-C
	@exec $(BIN)/lienworker up

dev: install  ## Run the stack and start its workers again when the code changes
	@exec $(BIN)/lienworker up --watch lienworker

hooks: install  ## Check each commit before it is made
	$(BIN)/pre-commit install

docs: install  ## Make the reference pages docs/settings.md and docs/platforms.md again
	$(BIN)/python docs/settings_page.py > docs/settings.md
	$(BIN)/python docs/platforms_page.py > docs/platforms.md

fuzz: install  ## Read a hundred thousand damaged import files: make fuzz [MUTATIONS=100000] [SEED=1]
	$(BIN)/python tests/intake/fuzzing.py --mutations $(or $(MUTATIONS),100000) --seed $(or $(SEED),1)

fuzz-lists: install  ## Read ten thousand damaged workbooks and PDF documents: make fuzz-lists [MUTATIONS=10000] [SEED=1]
	$(BIN)/python -m tests.intake.list_fuzzing --mutations $(or $(MUTATIONS),10000) --seed $(or $(SEED),1)

all-counties: install  ## From state, county and parcel id alone to results, for every county with a layer in OpenAddresses
	$(BIN)/python -m benchmarks.all_counties

bench-saved: install  ## Saved pages: 2,000 out to WARC and back the same, and 5 GB in flat memory
	$(BIN)/python -m benchmarks.saved_pages

bench: install  ## Pages a second: the bare loop, Scrapy, Celery and lienworker in turns (10 minutes)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[peers]'
	$(BIN)/python -m benchmarks.speed --write docs/performance

bench-growth: install  ## What a page costs at a million tasks, and a worker after 100,000 pages (15 minutes)
	$(BIN)/python -m benchmarks.growth
	$(BIN)/python -m benchmarks.growth --long 100000

bench-hosts: install  ## Politeness at full speed with 500 hosts, and fairness beside bad ones
	$(BIN)/python -m benchmarks.hosts

bench-flow-sites: install  ## Walk four sites with sessions, 500 parcels each: all pages, spacing, sessions, nothing lost (12 minutes)
	$(BIN)/python -m benchmarks.flow_sites

# A seed repeats the plan of faults: make chaos SECONDS=600 SEED=21
SECONDS ?= 600
SEED    ?= 1
chaos: install  ## Break everything for a while, then print the balance: make chaos SECONDS=600 SEED=7
	$(BIN)/python -m chaos --seconds $(SECONDS) --seed $(SEED)

bench-import: $(PROGRAM)  ## Measure the import of a million rows against plain sqlite3
	$(BIN)/python -m benchmarks.importing

bench-harvest: install  ## Harvest a layer of a million parcels against a bare loop: rate, memory, growth (10 minutes)
	$(BIN)/python -m benchmarks.harvest

bench-migration: install  ## Measure the upgrade of a million rows to the newest schema, with two kills on the way
	$(BIN)/python -m benchmarks.migration

bench-drain: install  ## Measure the drain after an outage against a bare loop
	$(BIN)/python -m benchmarks.draining

bench-outage: install  ## What a Gateway that is down, fails, refuses, hangs or limits does to a worker, at full size (15 minutes)
	$(BIN)/python -m benchmarks.outage

year: install  ## Put 200,000 tasks through one folder with retention at its minimum
	$(BIN)/python -m benchmarks.year

bench-parse: install  ## Measure the parsers against a bare parsel script on the same pages
	$(BIN)/python -m benchmarks.parsing

bench-hostile: install  ## Measure what hostile pages of up to 16 MB cost, each kind alone and 64 at once, stored and fetched
	$(BIN)/python -m benchmarks.hostile
	$(BIN)/python -m benchmarks.hostile --megabytes 3

bench-looking: $(PROGRAM)  ## Seconds to the first line of every list, show and export command at a million tasks
	$(BIN)/python -m benchmarks.looking

bench-web: install  ## Measure the monitor at a million tasks and outbox rows
	$(BIN)/python -m benchmarks.web

browser-full: install  ## Two hundred clicks beside twenty tasks a second, and ten tabs for a minute (needs Chromium)
	TAB_SECONDS=60 CLICKS=50 $(BIN)/python -m pytest tests/web/test_live.py

screenshots: install  ## Make the pictures in docs/monitor again (needs Chromium)
	$(BIN)/python -m tests.web.screenshots docs/monitor

clean:  ## Remove the virtual environment and caches (never the data folder)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
