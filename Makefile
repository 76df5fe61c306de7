# `make serve` and `make test` are all that is needed; `make help` lists the rest.
# Needs Python 3.11 or newer and make; everything else goes into .venv.

PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= 2
HTTP_PORT ?= 8000
GRPC_PORT ?= 8001
METRICS_PORT ?= 8002

.DEFAULT_GOAL := help
.PHONY: help serve classify test quick lint types conformance docs bench clean environment

help: ## list the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-12s %s\n", $$1, $$2}'

serve: ## serve examples/repository on ports 8000 (HTTP), 8001 (gRPC) and 8002 (metrics)
	@echo "== installing moorage and the plugins of the demo into .venv"
	@$(PYTHON) scripts/environment.py serve
	@echo "== serving examples/repository: HTTP $(HTTP_PORT), gRPC $(GRPC_PORT), metrics $(METRICS_PORT); Ctrl-C ends it"
	@exec $(BIN)/moorage serve --model-repository=examples/repository \
		--http-port=$(HTTP_PORT) --grpc-port=$(GRPC_PORT) --metrics-port=$(METRICS_PORT)

classify: ## classify handwritten digits on the running `make serve`, with the official client
	@echo "== installing the client into .venv"
	@$(PYTHON) scripts/environment.py client
	@echo "== classifying the digits that the model was not trained on"
	@$(BIN)/python examples/classify_digits.py --http 127.0.0.1:$(HTTP_PORT)
	@$(BIN)/python examples/classify_digits.py --grpc 127.0.0.1:$(GRPC_PORT)

environment:
	@echo "== installing moorage, all plugins and the tools into .venv"
	@$(PYTHON) scripts/environment.py test

test: environment ## install everything and run all tests
	@echo "== running all tests on $(WORKERS) processes"
	@$(BIN)/python -m pytest -n $(WORKERS)

quick: environment ## the tests that take no more than seconds
	@echo "== running the quick tests"
	@$(BIN)/python -m pytest -m "not heavy and not conformance" -n $(WORKERS)

lint: environment ## ruff: rules and format; import layers
	@echo "== ruff check"
	@$(BIN)/ruff check .
	@echo "== ruff format --check"
	@$(BIN)/ruff format --check .
	@echo "== import layers"
	@$(BIN)/lint-imports --no-cache

types: environment ## mypy, strict
	@echo "== mypy"
	@$(BIN)/mypy

conformance: environment ## compare the server with what Triton was recorded to do, counts by area
	@echo "== recorded cases, $(WORKERS) at a time"
	@$(BIN)/python -m pytest tests/conformance -n $(WORKERS) -q --no-header -r fE

docs: environment ## run the code blocks of README.md, docs/ and examples/
	@echo "== code blocks, configurations and examples"
	@$(BIN)/python -m pytest tests/docs

bench: environment ## benchmarks (see bench/README.md)
	@test -f bench/run.py || { echo "there are no benchmarks yet"; exit 1; }
	@echo "== benchmarks"
	@$(BIN)/python bench/run.py

clean: ## remove .venv, caches and builds
	@echo "== removing .venv, caches and builds"
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .coverage .coverage.* htmlcov .hypothesis
	@find core plugins tests examples -type d \( -name __pycache__ -o -name dist -o -name build \) -prune -exec rm -rf {} +
