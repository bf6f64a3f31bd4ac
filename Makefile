# `make run` starts Baton with nothing configured; `make test` checks everything. `make help` lists the rest.

CARGO ?= cargo
# Where cargo puts what it builds; some people share one folder between checkouts.
TARGET := $(or $(CARGO_TARGET_DIR),target)
ONLY ?=
SOAK ?= 10
SOAK_MINUTES ?= 30
SOAK_SEED ?=
# The lowest share of lines in percent that `make coverage` accepts.
COVERAGE ?= 90
# Without the tests that count files or read documents in a process with limits: an instrumented program writes its profile too.
COUNTABLE := not (test(a8_files_of_a_thread_are_listed) + test(a15_export_of_a_user_has) + test(spooled_output_is_readable_after_a_crash) + test(f_30_vat_check_of_an_invoice) + test(k_3_hostile_documents))
# The latency targets are measured with PostgreSQL too.
WITH_POSTGRES := $(if $(ONLY),$(if $(filter targets,$(ONLY)),scripts/with-postgres.sh),scripts/with-postgres.sh)
# What `make smoke` tries: the endpoint, the model (the first one that it lists) and further flags.
MODEL_URL ?=
MODEL ?=
SMOKE ?=
# What the tests of the web page use: a browser, and the server as it was built last.
CHROMIUM ?= /usr/bin/chromium
UI := CHROMIUM=$(CHROMIUM) BATON_BIN=$(abspath $(TARGET))/debug/baton scripts/with-node.sh npm --prefix ui run

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-9s %s\n", $$1, $$2 }'

.PHONY: run
run: ## Build Baton and start the server with the bundled agents, with nothing configured
	@scripts/setup.sh run
	@scripts/ui.sh run
	@$(CARGO) build --locked -p baton
	@$(TARGET)/debug/baton serve

.PHONY: test
test: ## Install what the tests need, then run every check and test
	@scripts/setup.sh test
	$(CARGO) fmt --all --check
	scripts/requirements.py --check
	@scripts/ui.sh test
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) test --workspace --doc --locked
	@# Builds the command too, which the checks of the page ask for the description of the API.
	$(CARGO) nextest run --workspace --locked --no-run
	$(UI) check
	scripts/with-postgres.sh scripts/with-node.sh $(CARGO) nextest run --workspace --locked
	$(UI) e2e
	scripts/deny.sh
	@scripts/sbom.sh

.PHONY: lint
lint: ## Formatting, clippy and cargo-deny
	@scripts/setup.sh test
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	scripts/deny.sh

.PHONY: coverage
coverage: ## Run all Rust tests with coverage and write target/coverage/html; COVERAGE=90 is the lowest share of lines
	@scripts/setup.sh coverage
	@scripts/ui.sh test
	$(CARGO) llvm-cov clean --workspace
	scripts/with-postgres.sh scripts/with-node.sh $(CARGO) llvm-cov nextest --workspace --locked --no-report -E '$(COUNTABLE)'
	$(CARGO) llvm-cov report --failure-mode all --html --output-dir target/coverage --ignore-filename-regex '/(tests|bench|smoke)/'
	$(CARGO) llvm-cov report --failure-mode all --summary-only --fail-under-lines $(COVERAGE) --ignore-filename-regex '/(tests|bench|smoke)/'

.PHONY: sbom
sbom: ## Write what the command contains to target/baton.cdx.json (CycloneDX)
	@scripts/sbom.sh

.PHONY: ui
ui: ## Build only the web page, into ui/dist
	@scripts/setup.sh run
	@scripts/ui.sh build

.PHONY: shots
shots: ## Take the screenshots of the README anew
	@scripts/setup.sh test
	@scripts/ui.sh test
	@scripts/pip.sh ui/e2e/shots/requirements.txt target/pip/shots "the maker of animations"
	@$(CARGO) build --locked -p baton
	SHOTS_PYTHON=$(CURDIR)/target/pip/shots/bin/python $(UI) shots

.PHONY: bench
bench: ## Measure speed as ratios within one run (ONLY=agents for a part, ONLY=targets for latencies under load, ONLY=page for the web page)
ifeq ($(filter-out page,$(ONLY)),)
	@scripts/setup.sh test
	@scripts/ui.sh test
	@$(CARGO) build --locked -p baton
	$(UI) bench
endif
ifneq ($(ONLY),page)
	@scripts/setup.sh $(if $(WITH_POSTGRES),test,run)
	@scripts/ui.sh run
	$(WITH_POSTGRES) $(CARGO) run --locked --release -q -p baton-bench -- $(ONLY)
endif

.PHONY: smoke
smoke: ## Try a model with 70 cases (MODEL_URL=http://127.0.0.1:11434/v1 MODEL=name SMOKE="--only routing")
	@test -n "$(MODEL_URL)" || { echo "make smoke needs MODEL_URL, see docs/models.md" >&2; exit 2; }
	@scripts/setup.sh run
	@$(CARGO) build --locked -q -p baton -p baton-smoke
	@$(TARGET)/debug/baton-smoke --model-url "$(MODEL_URL)" $(if $(MODEL),--model "$(MODEL)") $(SMOKE)

.PHONY: soak
soak: ## Break a loaded server for SOAK_MINUTES (30; SOAK_SEED repeats a plan), then kill runs and send noise (SOAK=10 for more)
	@scripts/setup.sh test
	@$(CARGO) build --locked -p baton
	python3 scripts/soak --minutes $(SOAK_MINUTES) $(if $(SOAK_SEED),--seed $(SOAK_SEED)) --binary $(TARGET)/debug/baton
	BATON_SOAK=$(SOAK) scripts/with-postgres.sh $(CARGO) nextest run --locked -p baton -E 'test(crash::)' --no-fail-fast
	BATON_SOAK=$(SOAK) $(CARGO) nextest run --locked -p baton-server -E 'test(fuzz::) + test(made_up::)' --no-fail-fast

.PHONY: clean
clean: ## Remove everything that was built
	$(CARGO) clean
	rm -rf ui/dist
