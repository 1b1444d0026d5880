# One door to everything. `make demo` and `make test` need Python 3.11 or newer, cargo and a C compiler.

PYTHON ?= python3
CARGO ?= cargo
VENV := .venv
BIN := $(VENV)/bin

export PIP_QUIET := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Cargo and maturin ask the same interpreter, so that neither undoes the other's build.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python

.DEFAULT_GOAL := help
.PHONY: help venv build wheel test-wheels demo test test-rust test-build test-python test-papers test-long test-sanitizers advisories check check-rust check-python docs instructions instructions-accept \
	soak soak-servers fuzz generate reproduce format bench limits clean

help: ## Say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(VENV)/ready ## Make .venv with the pinned tools

$(VENV)/ready: requirements-dev.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; say which with PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --requirement requirements-dev.txt
	touch $@

build: venv ## Build the core and install tool and papers into .venv
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --quiet
	$(BIN)/python -m pip install --no-deps --no-build-isolation --config-settings editable_mode=compat --editable papers

# Every wheel runs on Python 3.11 and newer, on Linux with glibc 2.17 (2014) and newer.
PROCESSORS ?= x86_64 aarch64

wheel: venv ## Wheels of tool and papers for PROCESSORS, and the sources: out/wheels
	$(BIN)/python -m pip install --requirement requirements-wheel.txt
	@mkdir -p out/wheels
	for processor in $(PROCESSORS); do \
		rustup target add $$processor-unknown-linux-gnu && \
		PATH=$(CURDIR)/$(BIN):$$PATH maturin build --release --quiet --zig --compatibility manylinux_2_17 \
			--target $$processor-unknown-linux-gnu --out out/wheels || exit 1; \
	done
	$(BIN)/maturin sdist --out out/wheels
	$(BIN)/python -m pip wheel --no-deps --no-build-isolation --wheel-dir out/wheels ./papers
	tools/check-wheels.sh out/wheels

test-wheels: ## The wheels of out/wheels in empty roots of Debian, each Python and processor; as root, with mmdebstrap and qemu-user-static
	PYTHON=$(BIN)/python PROCESSORS="$(PROCESSORS)" tools/test-wheels.sh out/wheels

demo: build ## A real trace under three cleaning policies on settled drives, as a table and as out/demo.html
	@mkdir -p out
	$(BIN)/flashwright compare default --trace bundled:pgbench --depth 8 \
		--vary gc.victim=greedy,cost-benefit,random --verify --report out/demo.html
	@echo "open out/demo.html in a browser"

test: test-rust test-python test-papers ## The tests that take minutes together

# Random cases are the same each time here; test-long and fuzz draw new ones.
test-rust: venv
	PROPTEST_RNG_SEED=1 $(CARGO) test --workspace --quiet

# What continuous integration does beside linking.
test-build: check-rust
	$(CARGO) test --workspace --quiet --no-run

test-python: build
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-papers: build
	$(BIN)/python -m pytest -n 2 papers/tests papers/flashwright_papers

test-long: build ## What takes long: theory at full size, ten million requests a scheduler, every claim
	$(CARGO) test --workspace --quiet -- --ignored
	$(BIN)/python -m pytest -n 2 -m long tests/python papers/tests
	$(MAKE) test-sanitizers

# Those crates have unsafe code, or read what others send; what depends on nothing but them is tested with an address sanitizer,
# and under Miri what it can carry out: no ring and no mapped file. Both need a nightly compiler.
NIGHTLY ?= nightly
SANITIZED := --package flashwright-nand --package flashwright-disk --package flashwright-nvme --package flashwright-serve --package flashwright-fuzz

test-sanitizers: ## Memory errors, by an address sanitizer and Miri; needs rustup toolchain install nightly --component miri,rust-src
	@$(CARGO) +$(NIGHTLY) --version > /dev/null || { echo "not tested: memory errors, for want of a nightly compiler"; exit 1; }
	ASAN_OPTIONS=detect_leaks=0 RUSTFLAGS=-Zsanitizer=address RUSTDOCFLAGS=-Zsanitizer=address \
		$(CARGO) +$(NIGHTLY) test --quiet --lib --tests --target x86_64-unknown-linux-gnu --target-dir target/sanitized $(SANITIZED)
	MIRIFLAGS=-Zmiri-disable-isolation $(CARGO) +$(NIGHTLY) miri test --quiet --target-dir target/miri --package flashwright-nand --lib

# make soak OPERATIONS=1e6, HOURS=8 or SEED=17
soak: venv ## Power cuts on drives of random shape, a billion operations: OPERATIONS= or HOURS= set how many, SEED= the first drive
	OPERATIONS="$(OPERATIONS)" HOURS="$(HOURS)" SEED="$(SEED)" \
		$(CARGO) test --quiet -p flashwright-ssd --test all -- --ignored --exact --nocapture soak::soak

SOAK_SECONDS ?= 3600

soak-servers: build ## Repeat all that can be repeated with servers, and tell what grows: an hour, or SOAK_SECONDS=60
	$(BIN)/python tests/python/soaking.py $(SOAK_SECONDS)

check: check-rust check-python docs ## Formatting, lints, types, reference pages and links

# cargo fmt doesn't see modules that macros declare, so rustfmt is given every file.
# One line for each check.
check-rust: venv
	rustfmt --check --edition 2024 $$(git ls-files '*.rs')
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings
	@if $(CARGO) deny --version > /dev/null 2>&1; \
	then $(CARGO) deny --offline --log-level error check --allow unmatched-skip bans licenses sources; \
	else echo "not checked: versions and sources of packages, for want of cargo-deny (cargo install cargo-deny --locked)"; fi

advisories: ## What is known against packages that are linked; asks the network, needs cargo-deny
	$(CARGO) deny check --allow unmatched-skip advisories

check-python: build
	$(BIN)/ruff format --check --quiet
	$(BIN)/ruff check --quiet
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/mypy
	for folder in experiments/*/; do MYPYPATH=$$folder:experiments $(BIN)/mypy $$folder*.py || exit 1; done
	MYPYPATH=papers/tests $(BIN)/mypy papers/tests/*.py
	$(BIN)/python -m mypy.stubtest flashwright._core
	$(BIN)/python tools/reference.py --check
	$(BIN)/python tools/licences.py --check

docs: $(VENV)/docs ## The documentation site: out/site/index.html; fails where a link is dead
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

$(VENV)/docs: requirements-docs.txt | $(VENV)/ready
	$(BIN)/python -m pip install --requirement requirements-docs.txt
	touch $@

generate: build ## Write the reference pages from the code, and the notices of what the wheel links
	$(BIN)/python tools/reference.py
	$(BIN)/python tools/licences.py

reproduce: build ## All claims of the papers in full size: docs/claims.json, docs/explanation/claims and figures, out/claims.html
	@mkdir -p out
	$(BIN)/flashwright reproduce --json docs/claims.json --markdown docs/explanation/claims \
		--paper-page docs/explanation/figures --report out/claims.html \
		|| test $$? -eq 1

format: venv ## Format all code
	rustfmt --edition 2024 $$(git ls-files '*.rs')
	$(BIN)/ruff format --quiet

# Without --package, Cargo chooses the features of what is used for the whole workspace, as `make build` needs them. So the two share what is
# compiled, and only this program is compiled anew.
BENCH := $(CARGO) run --release --bin flashwright-bench

instructions: ## Instructions on the paths that count, against crates/bench/instructions.toml
	$(BENCH) --quiet -- instructions

instructions-accept: ## Take what is counted now as the limits
	$(BENCH) --quiet -- instructions --accept

FUZZ_SECONDS ?= 600

fuzz: build ## Damaged files, and damaged talk at every socket: ten minutes of each, or FUZZ_SECONDS=60
	FLASHWRIGHT_FUZZ_SECONDS=$(FUZZ_SECONDS) $(CARGO) test --package flashwright-fuzz
	FLASHWRIGHT_FUZZ_SECONDS=$(FUZZ_SECONDS) $(BIN)/python -m pytest -n 2 tests/python/test_fuzz.py tests/python/test_fuzz_sockets.py

bench: ## How fast a run is, as a ratio to the least work
	$(BENCH)

limits: ## Every path that has a bound, with its floor, in one sitting; FLASHWRIGHT_FLOOR=floor.c names a floor in C
	$(BENCH) -- limits

clean: ## Remove what was built
	rm -rf target $(VENV) out python/flashwright/_core*.so
