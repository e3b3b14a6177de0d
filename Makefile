# Everything runs in .venv, which `make setup` makes; the targets that need it do so themselves.
# PYTHON=... chooses another interpreter, WORKERS=... another number of test processes.

PYTHON ?= $(firstword $(shell command -v python3.11) $(shell command -v python3) python3)
WORKERS ?= 2
BIN := .venv/bin
READY := .venv/.ready
KERNELS := .venv/.kernels
KERNEL_SOURCES := setup.py $(wildcard src/stratalog/records/*.pyx src/stratalog/records/*.pxi \
	src/stratalog/records/*.pxd src/stratalog/records/*.h)

.DEFAULT_GOAL := help
.PHONY: help setup demo test check docs protocol deep bench interop interop-clients clean

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(KERNELS) ## Make .venv with all that any target needs, and compile the kernels

# Nothing to do takes no time: pip runs again only when what it installs has changed.
$(READY): pyproject.toml setup.py constraints.txt tools/setup
	@PYTHON="$(PYTHON)" tools/setup
	@touch $@

$(KERNELS): $(KERNEL_SOURCES) tools/build-kernels | $(READY)
	@PYTHON="$(CURDIR)/$(BIN)/python" tools/setup --kernels $(KERNEL_SOURCES)
	@touch $@

# Java is asked for before anything is made: whoever lacks it hears so at once.
demo: ## Show everything at work: a broker, Kafka clients and Spark, in two minutes (ARGS=...)
	@tools/setup --java
	@$(MAKE) --no-print-directory setup
	@$(BIN)/python -m stratalog demo $(ARGS)

test: setup ## Run the tests, and a little fuzzing under AddressSanitizer
	$(BIN)/python -m pytest -n $(WORKERS)
	tools/fuzz-asan --seconds 5

check: setup ## Lint, formatting, types, direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: setup ## Write the pages that are made from the code
	$(BIN)/python -m stratalog.config.reference docs/reference/config.md

protocol: setup ## Write the codecs of the wire protocol from Kafka's message schemas
	PYTHONPATH=tools $(BIN)/python -m protocol_generator

deep: setup ## Run the long tests, then fuzz the kernels under AddressSanitizer
	HYPOTHESIS_PROFILE=deep $(BIN)/python -m pytest -n $(WORKERS) -m "deep or not interop"
	tools/fuzz-asan --seconds 300

bench: setup ## Measure everything beside its peers, or ONLY=NAME,… (40 min; BENCH=--quick: tiny)
	$(BIN)/python -m benchmarks $(ONLY) $(BENCH)

interop: setup ## Run against Apache Kafka, its tools and other clients (Java 17, Maven, npm)
	$(BIN)/python -m pytest -m interop -rs tests/interop

interop-clients: setup ## Run what other clients do with our broker against Apache Kafka as well
	$(BIN)/python -m pytest -m interop tests/clients

clean: ## Remove all that was made
	rm -rf .venv build dist .hypothesis .pytest_cache .mypy_cache .ruff_cache .import_linter_cache \
		src/*.egg-info src/stratalog/records/_kernels*.so src/stratalog/records/_kernels.c .interop
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
