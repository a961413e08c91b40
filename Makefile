# Every target sets up what it needs, once for each change of pyproject.toml: a virtual
# environment in $(VENV) and, by pip, the package with the extras the target uses.

PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
ARGS ?=

BIN := $(VENV)/bin
STAMPS := $(VENV)/.sash
JAVA = $${JAVA_HOME:+$$JAVA_HOME/bin/}java
JAVA_MAJOR = $$($(JAVA) -version 2>&1 | sed -nE 's/.*version "(1\.)?([0-9]+).*/\2/p' | head -n 1)
GET_JAVA := apt-get install openjdk-17-jre-headless, brew install openjdk@17, or Adoptium
GET_PYTHON := apt-get install python3 python3-venv, brew install python, or make PYTHON=path/to/python

# An old make mixes what stages say that run side by side.
SYNC = $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

# Tests start many processes, which import the same modules: Python keeps their bytecode,
# whatever the environment says.  So pip compiles nothing: most of it is never imported.
export PYTHONDONTWRITEBYTECODE :=

# Tests keep their compiled kernels apart from the user's, so that a run depends on nothing
# outside this folder.
TEST_ENV = SASH_CACHE_DIR="$(abspath $(VENV))/sash-kernels"
PYTEST = $(TEST_ENV) $(BIN)/python -m pytest
PLAIN_TESTS = $(wildcard tests/aggregators tests/cli tests/kernels tests/engine tests/explain) \
	$(wildcard tests/state tests/slicing tests/sql) \
	$(addprefix tests/,operators/test_codec.py query/test_plan.py spark/test_payloads.py \
	spark/test_processor.py spark/test_shared_windows.py stores/test_faults.py test_docs.py test_examples.py testing/test_fuzz.py)
# Operators that are Python objects, which no JIT compiles, or kernels that others test as well.
# What is marked `once` goes with them.
JIT_ONLY = $(addprefix tests/,aggregators/test_choose.py aggregators/test_costs.py \
	aggregators/test_papers.py engine/test_tile_stream.py)
# About Python code alone, or operators that count in Python; with the JIT on they would take
# minutes to compile what others test, or do the same again.  What is marked `plain` goes with them.
PLAIN_ONLY = $(addprefix tests/,aggregators/test_worst.py engine/test_identity.py \
	engine/test_intake.py engine/test_keys.py engine/test_nanoseconds.py \
	engine/test_oracle_switch.py operators/test_codec.py query/test_plan.py \
	slicing/test_composite.py slicing/test_edges.py slicing/test_factors.py \
	spark/test_payloads.py spark/test_processor.py spark/test_shared_windows.py \
	sql/test_duckdb.py sql/test_errors.py \
	sql/test_statements.py sql/test_streams.py stores/test_faults.py test_docs.py testing/test_fuzz.py)
# Examples in docstrings, which show what is computed: compiled or not, it is the same.
DOCTESTS = src
# The loop while working: with the JIT off, what is quick of each folder, and what reads all sources.
CHECK_TESTS = $(addprefix tests/,aggregators/test_cbix.py aggregators/test_copy.py \
	aggregators/test_flat_fat.py aggregators/test_guard.py \
	aggregators/test_timed.py engine/test_answers.py engine/test_copied_stream.py \
	engine/test_identity.py engine/test_intake.py engine/test_keys.py engine/test_nanoseconds.py \
	engine/test_run.py engine/test_stream.py engine/test_stream_more.py engine/test_tables.py \
	kernels query slicing spark/test_payloads.py sql/test_errors.py state/test_memory.py \
	state/test_scan.py stores/test_stores.py \
	testing/test_fuzz.py windows test_stages.py test_surface.py)
SPARK_TESTS = tests/spark
# Each starts drivers of its own, and kills them or their workers.
FAULT_TESTS = tests/faults
# Long ones, in terminals and browsers: `make test-front`.
FRONT_TESTS = $(wildcard tests/front)
KILLS ?= $(STAMPS)/kills.jsonl
KILLS_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo tour check test test-full test-faults test-front test-fresh lint style types local unit plain spark faults bench bench-spark java clean

help: ## this list
	@echo "sash: make TARGET, where TARGET is one of"
	@sed -nE 's/^([a-z-]+):.*## (.*)/  \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 16

demo: $(STAMPS)/demo java ## a month of real flights as a job on Spark, beside Spark's own window()
	@$(BIN)/sash demo

tour: $(STAMPS)/core ## the aggregators at work, without Spark
	@$(BIN)/python examples/aggregators.py

check: lint ## the loop while working: lint, types, and quick tests with the JIT off (2 minutes)
	@echo "==> pytest, a quick part with the JIT off, $(WORKERS) workers"
	@SASH_JIT=0 $(PYTEST) -n $(WORKERS) --dist worksteal -m "not once" $(CHECK_TESTS) $(ARGS)

test: java style ## lint, and all tests: compiled, with the JIT off, and on Spark
	@echo "==> types, the tests on Spark and those of faults, side by side with all others"
	@$(MAKE) --no-print-directory --jobs=4 $(SYNC) types local spark faults
	@echo "==> all stages passed"

# Spark's tests, in one session, take longest: these take what time they leave.
local: ## the tests without Spark: compiled, then with the JIT off
	@nice -n 5 $(MAKE) --no-print-directory unit
	@nice -n 5 $(MAKE) --no-print-directory plain

test-full: ## the same, with whole products of parameters and more examples (an hour)
	@SASH_FULL=1 $(MAKE) --no-print-directory test

test-faults: $(STAMPS)/test java ## long streams, and a thousand kills, which go on where they ended (hours)
	@echo "==> pytest, with a long stream and all chains"
	@SASH_FAULTS=1 $(PYTEST) $(FAULT_TESTS) tests/spark/test_endurance.py tests/spark/test_chains.py $(ARGS)
	@echo "==> kills of processes that use a store"
	@$(TEST_ENV) $(BIN)/python tests/faults/store_kills.py
	@echo "==> kills of drivers, executors and Python workers; what is done is in $(KILLS)"
	@$(TEST_ENV) $(BIN)/python tests/faults/kills.py "$(KILLS)" $(KILLS_ARGS)

test-front: $(STAMPS)/front java ## the command line in a terminal, the page in a browser (10 minutes)
	@echo "==> pytest, Spark in a terminal"
	@$(PYTEST) $(FRONT_TESTS) $(ARGS)

test-fresh: java ## the lines of the README and the tutorial, by an installation from a fresh clone
	@PYTHON="$(PYTHON)" tools/fresh_clone.sh $(ARGS)

lint: style types ## ruff (lint and format), the import rules, mypy

style: $(STAMPS)/test
	@echo "==> ruff check"
	@$(BIN)/ruff check .
	@echo "==> ruff format --check"
	@$(BIN)/ruff format --check .
	@echo "==> import rules"
	@$(BIN)/python tests/test_imports.py

types: $(STAMPS)/test
	@echo "==> mypy --strict"
	@$(BIN)/mypy --strict

unit: $(STAMPS)/test ## the tests, compiled (ARGS="-k daba" for some; WORKERS=2)
	@echo "==> pytest, $(WORKERS) workers (the first run also compiles the kernels)"
	@$(PYTEST) -n $(WORKERS) --dist worksteal -m "not plain" \
		$(patsubst %,--ignore=%,$(SPARK_TESTS) $(FAULT_TESTS) $(FRONT_TESTS) $(PLAIN_ONLY)) \
		$(patsubst %,--ignore-glob="%/*",$(DOCTESTS)) $(ARGS)

plain: $(STAMPS)/test ## doctests, and the kernels' tests with the JIT off, on memory that checks bounds
	@echo "==> pytest with the JIT off"
	@if [ -z "$(PLAIN_TESTS)" ]; then \
		echo "no tests of kernels here: nothing to run"; \
	else \
		SASH_JIT=0 $(PYTEST) -n $(WORKERS) --dist worksteal -m "not once" $(PLAIN_TESTS) $(DOCTESTS) \
			$(patsubst %,--ignore=%,$(JIT_ONLY)) $(ARGS); \
	fi

spark: $(STAMPS)/test java ## the tests on Spark, with one session for all
	@echo "==> pytest on Spark"
	@$(PYTEST) $(SPARK_TESTS) $(patsubst %,--ignore=%,$(PLAIN_ONLY)) $(ARGS)

faults: $(STAMPS)/test java ## streams on Spark of which a driver or workers are killed
	@echo "==> pytest on Spark, with kills"
	@$(PYTEST) $(FAULT_TESTS) $(ARGS)

bench: $(STAMPS)/bench ## speed against other libraries (ARGS=--quick for small sizes)
	@$(BIN)/python -m benchmarks $(ARGS)

bench-spark: $(STAMPS)/bench java ## Spark streaming and batch against Spark's own window()
	@$(BIN)/python -m benchmarks.spark $(ARGS) 2> "$(STAMPS)/bench-spark.log"

java: ## whether Java is there for Spark
	@major=$(JAVA_MAJOR); \
	if [ "$${major:-0}" -lt 17 ]; then \
		echo "Spark needs Java 17 or newer; found: $${major:-none}. Get it with" >&2; \
		echo "$(GET_JAVA)," >&2; \
		echo "and set JAVA_HOME if it is not the java on the PATH." >&2; \
		exit 1; \
	fi; \
	echo "Java $$major: good for Spark"

clean: ## remove caches and compiled kernels (the set-up stays: rm -rf .venv to redo it)
	@rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist "$(VENV)/sash-kernels"
	@find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMPS)/venv:
	@command -v $(PYTHON) > /dev/null || { \
		echo "sash needs Python 3.11 or newer, and there is no $(PYTHON). Get it with" >&2; \
		echo "$(GET_PYTHON)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "sash needs Python 3.11 or newer; this is $$($(PYTHON) --version). Get it with" >&2; \
		echo "$(GET_PYTHON)" >&2; exit 1; }
	@echo "==> making $(VENV)"
	@$(PYTHON) -m venv "$(VENV)" || { \
		echo "$(PYTHON) cannot make a virtual environment; on Debian and Ubuntu the package" >&2; \
		echo "python3-venv is missing: apt-get install python3-venv" >&2; exit 1; }
	@mkdir -p "$(STAMPS)" && touch "$@"

EXTRAS_core :=
EXTRAS_test := [test]
EXTRAS_front := [front]
EXTRAS_bench := [bench]
EXTRAS_demo := [demo]

$(STAMPS)/core $(STAMPS)/test $(STAMPS)/front $(STAMPS)/bench $(STAMPS)/demo: $(STAMPS)/%: pyproject.toml | $(STAMPS)/venv
	@echo "==> pip install sash$(EXTRAS_$*) (once for each change of pyproject.toml)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable ".$(EXTRAS_$*)"
	@touch "$@"
