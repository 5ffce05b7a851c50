# `make` alone prints what there is. Every target does its own set-up and needs no root;
# a second call does only what has changed.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name Cargo.toml)
PYTHON_SOURCES := pyproject.toml README.md LICENSE $(shell find python/headrace examples/tpch -type f -not -name '*.so' -not -name '*.pyc')
# The profile of tests and of the wheel that CI tries: the core is compiled once for both.
PROFILE ?= ci

# maturin follows these to the environment that it installs into.
IN_VENV = env --unset=CONDA_PREFIX VIRTUAL_ENV=$(CURDIR)/$(1) PATH="$(CURDIR)/$(1)/bin:$$PATH"

.PHONY: help
help: ## what you are reading
	@echo "Headrace: make TARGET"
	@echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do printf '  %-12s %s\n' "$$name" "$$text"; done

# --- use -------------------------------------------------------------------------------------------------------------

.PHONY: build
build: .venv/.built ## build .venv/bin/headrace with all optimizations (first time: about 2 minutes)

.PHONY: demo
demo: build ## build, generate 108 MB of TPC-H text, load it into demo/tpch.duckdb, check every row
	@.venv/bin/headrace demo

.venv/.requirements: requirements/runtime.txt requirements/build.txt requirements/venv.sh | tools
	@requirements/venv.sh .venv requirements/runtime.txt requirements/build.txt
	@touch $@

# Installed from a wheel, not linked to the sources: the tests build another core beside them.
.venv/.built: .venv/.requirements $(RUST_SOURCES) $(PYTHON_SOURCES)
	@rm -rf target/wheel-release
	$(call IN_VENV,.venv) maturin build --release --locked --out target/wheel-release
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall target/wheel-release/*.whl
	@touch $@

# --- checks ----------------------------------------------------------------------------------------------------------

.PHONY: test
test: .venv-ci/.requirements ## every check: format, lints, types, layers, all tests but those of faults (minutes by step: docs/contributing/test-times.md)
	@$(call IN_VENV,.venv-ci) .ci/steps all

.PHONY: test-faults
test-faults: .venv-ci/.requirements ## tests of kills, cuts, dead servers and full disks at many moments (about 4 minutes)
	@$(call IN_VENV,.venv-ci) .ci/steps faults

.PHONY: test-every-case
test-every-case: .venv-ci/.requirements ## both, with every case on every version of the server and every instruction set
	@HEADRACE_CASES=every $(call IN_VENV,.venv-ci) .ci/steps all
	@HEADRACE_CASES=every $(call IN_VENV,.venv-ci) .ci/steps faults

.PHONY: pytest
pytest: .venv-ci/.built ## only the tests in Python (ARGUMENTS="tests/cli -k progress")
	@$(call IN_VENV,.venv-ci) .ci/pytest $(ARGUMENTS)

.PHONY: nightly
nightly: .venv-ci/.built ## what takes longer, in ten shards: those that have not passed with this code (SHARDS="neon kills", or numbers)
	@$(call IN_VENV,.venv-ci) python -m tests.nightly run $(SHARDS)

# Twelve shards of the modules of pytest and one of cargo's tests; each can be run again by itself.
STRESS_SHARDS ?= cargo 1 2 3 4 5 6 7 8 9 10 11 12
.PHONY: stress
stress: .venv-ci/.built ## all tests with the CPU taken away: busy loops, processes stopped at random (STRESS_SHARDS="cargo 3")
	@for shard in $(STRESS_SHARDS); do \
		printf '\n=== stress: %s\n' "$$shard"; \
		if [ "$$shard" = cargo ]; then command=".ci/steps cargo"; else command="env HEADRACE_SHARD=$$shard/12 .ci/pytest"; fi; \
		$(call IN_VENV,.venv-ci) python -m tests.stress -- $$command || exit 1; \
	done

# `make snapshots TESTS="tests/cli -k infer"`; only then is something compiled or run.
.PHONY: snapshots
snapshots: .venv-ci/$(if $(TESTS),.built,.requirements) ## show and accept changed messages (TESTS="tests/cli": run these first, ACCEPT=1: do not ask)
	@.venv-ci/bin/python -m tests.accept_snapshots $(if $(ACCEPT),--accept) $(TESTS)

.PHONY: lint
lint: .venv-ci/.requirements ## only the checks that run nothing: format, lints, types, layers
	@$(call IN_VENV,.venv-ci) .ci/steps lint

# `make fuzz SECONDS=600 TARGET=convert_one JOBS=2`; `fuzz/run help` says what else there is.
SECONDS ?= 60
JOBS ?= 1
.PHONY: fuzz
fuzz: ## fuzz the parser under AddressSanitizer (SECONDS=60 per target, TARGET=all of them, JOBS=1)
	@fuzz/run fuzz $(TARGET) --seconds $(SECONDS) --jobs $(JOBS)

.PHONY: sanitize
sanitize: .venv-ci/.requirements ## tests of the parser and the engine under AddressSanitizer
	@.ci/sanitize

KILLS ?= 200
TERMINATIONS ?= 50
.PHONY: soak
soak: .venv-ci/.built ## loads into PostgreSQL killed at 200 random moments each, plain and divided, and with 50 sessions terminated; divided ones into DuckDB (about 35 minutes)
	@HEADRACE_CASES=every HEADRACE_REAL_STARTS=1 HEADRACE_SOAK_KILLS=$(KILLS) HEADRACE_SOAK_PACKAGE_KILLS=$(KILLS) HEADRACE_SOAK_TERMINATIONS=$(TERMINATIONS) .venv-ci/bin/python -m pytest --quiet -n 2 \
		-o faulthandler_timeout=0 --dist loadfile tests/integration/test_postgres_interruption.py tests/integration/test_postgres_partition_interruption.py \
		tests/integration/test_postgres_declared.py tests/integration/test_duckdb_partition_interruption.py \
		tests/integration/test_control_interruption.py tests/integration/test_nightly_example.py \
		-k "test_killed or test_sessions_are_terminated or test_many"

CASES ?= 200
.PHONY: limits
limits: .venv-ci/.built ## makes every limit happen at random sizes and shapes and compares the verdicts (CASES=200, about half an hour; as root all of them)
	@.venv-ci/bin/python -m tests.provoked --cases $(CASES) --output provoked.jsonl

# `make mutations SUITE=old PRODUCT=/path/to/checkout` runs the tests of another checkout, on its own code.
SUITE ?= new
PRODUCT ?= .
MOST_SECONDS ?= 900
MUTATIONS = .venv-ci/bin/python -m tests.mutations
TREE_OF_MUTATIONS = target/mutations/$(SUITE)
.PHONY: draw-mutations
draw-mutations: .venv-mutations/.requirements # writes tests/mutations/set.json anew: then no result is comparable any more
	@.venv-mutations/bin/python -m tests.mutations draw

.PHONY: mutations
mutations: .venv-ci/.requirements ## small mistakes in the code, one at a time, against the tests that reach each; goes on where it was stopped (hours)
	@[ -e $(TREE_OF_MUTATIONS)/programs.json ] || $(MUTATIONS) tree --name $(SUITE) --product $(PRODUCT)
	@[ -e $(TREE_OF_MUTATIONS)/links.json ] || $(MUTATIONS) links --name $(SUITE)
	@$(MUTATIONS) run --name $(SUITE) --output tests/mutations/results-$(SUITE).jsonl --most-seconds $(MOST_SECONDS)
	@$(MUTATIONS) table

.PHONY: test-neon
test-neon: ## tests of the parser on aarch64, in an emulator (.ci/install-neon-tools)
	@.ci/test-neon

.venv-ci/.requirements: requirements/runtime.txt requirements/build.txt requirements/dev.txt requirements/venv.sh | tools
	@requirements/venv.sh .venv-ci requirements/runtime.txt requirements/build.txt requirements/dev.txt
	@touch $@

.PHONY: wheel
wheel: dist/.$(PROFILE) ## the abi3 wheel into dist/ (PROFILE=release for one that others should use)

dist/.$(PROFILE): .venv-ci/.requirements $(RUST_SOURCES) $(PYTHON_SOURCES)
	@rm -rf dist
	$(call IN_VENV,.venv-ci) maturin build --profile $(PROFILE) --locked --out dist
	@touch $@

.PHONY: wheel-smoke
wheel-smoke: wheel ## install the wheel into an empty environment and load something with it
	@.ci/wheel-smoke dist/headrace-*.whl

.PHONY: lock
lock: ## compile requirements/*.txt anew; needs pip-compile (UPGRADE=--upgrade takes newer versions)
	@requirements/compile.sh $(UPGRADE)

.PHONY: docs
docs: .venv-ci/.requirements ## write the generated pages of docs/reference (`make test` checks that they are current)
	@PYTHONPATH=python .venv-ci/bin/python docs/reference/generate.py

.venv-ci/.built: .venv-ci/.requirements $(RUST_SOURCES) pyproject.toml
	@$(call IN_VENV,.venv-ci) PIP_QUIET=1 maturin develop --quiet --profile ci --locked
	@touch $@

INSTALL_IN_BENCH = .venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall $(1)/*.whl

.PHONY: bench
bench: .venv-bench/.built ## figures beside the peers (100 minutes, 28 GB of disk; ARGUMENTS="--kinds parse --tables lineitem --repetitions 3": a quick look)
	@.venv-bench/bin/python -m bench run $(ARGUMENTS)

.PHONY: bench-smoke
bench-smoke: wheel .venv-bench/.requirements .venv-bench-duckdb/.requirements ## every method of the bench on tiny files: all run, all agree; nothing is timed (2 minutes)
	@rm -f .venv-bench/.built # this wheel has its run-time checks on: `make bench` must not measure it
	@$(call INSTALL_IN_BENCH,dist)
	@.venv-bench/bin/python -m bench smoke

.venv-bench/.built: .venv/.built .venv-bench/.requirements .venv-bench-duckdb/.requirements
	@$(call INSTALL_IN_BENCH,target/wheel-release)
	@touch $@

.venv-bench/.requirements: requirements/runtime.txt requirements/bench.txt requirements/venv.sh | tools
	@requirements/venv.sh .venv-bench requirements/runtime.txt requirements/bench.txt
	@touch $@

.venv-mutations/.requirements: requirements/mutations.txt requirements/venv.sh | tools
	@requirements/venv.sh .venv-mutations requirements/mutations.txt
	@touch $@

.venv-bench-duckdb/.requirements: requirements/bench-duckdb.txt requirements/venv.sh | tools
	@requirements/venv.sh .venv-bench-duckdb requirements/bench-duckdb.txt
	@touch $@

# --- house -----------------------------------------------------------------------------------------------------------

.PHONY: clean
clean: ## remove everything that was built or downloaded, and the demo
	rm -rf .venv .venv-ci .venv-bench .venv-bench-duckdb .venv-mutations .bench target dist demo .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find python tests docs -name __pycache__ -prune -exec rm -rf {} +
	find python -name '_native*.so' -delete

.PHONY: tools
tools: # says what is missing before anything is downloaded
	@missing() { printf 'error: %s is needed and was not found\n\nhint: %s\n' "$$1" "$$2" >&2; exit 1; }; \
	command -v cargo >/dev/null || missing "cargo (Rust 1.89 or newer)" "Install Rust from your system's packages or with rustup."; \
	command -v cc >/dev/null || missing "a C compiler (cc)" "Install gcc or clang."; \
	command -v "$${PYTHON:-python3}" >/dev/null || missing "Python 3.11 or newer" "Install it, or name it: make PYTHON=/path/to/python3"
