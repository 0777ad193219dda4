# `make demo` and `make test` do everything on a fresh Debian or Ubuntu with Rust. `make help` lists.
# Both build in the dev profile and without --package, so that one build serves both: cargo gives a
# dependency other features, and compiles it again, when another set of packages is built.

CACHE := $(or $(RAMPART_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/rampart)
export RAMPART_CACHE := $(CACHE)
export PATH := $(CACHE)/tools/bin:$(PATH)
GUESTS := plugins/guests/Cargo.toml
CONNECTORS := plugins/connectors/Cargo.toml
# One test more than there are processors: some wait for a browser, a chain or a time-out.
THREADS := $(shell echo $$(($$(nproc) + 1)))

.PHONY: help demo test live clients payouts simulate conformance attack chaos topology fuzz optimised release release-test deb deb-test compose-test bare-test bench profile check prepare openapi setup

help: ## This list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 13

demo: ## Build, start everything, make one purchase, keep serving (ARGS=--exit: do not)
	@deploy/demo $(ARGS)

test: ## Every test: unit, contract, end to end, browser, policies (ARGS: a filter, or cargo's own)
	@deploy/setup --test
	@# Connectors and policies are built beside the tests, which leave a processor idle at times; the last step
	@# of the policies waits for them. All tests together build the program too (proxy/tests); those that ARGS
	@# chooses may not.
	{ export CARGO_TERM_QUIET=true; plugins/connectors/build && plugins/connectors/build --test && \
	    plugins/build --javascript; } & \
	    cargo test --workspace --locked --no-run $(ARGS) && \
	    cargo build --locked --bin rampart; \
	    built=$$?; wait $$! && exit $$built
	RUST_TEST_THREADS=$(or $(RUST_TEST_THREADS),$(THREADS)) \
	    cargo test --workspace --locked --no-fail-fast $(ARGS)

live: ## A live partner with a chain, cards and a bank: a purchase and a sale, step by step, and the books
	@deploy/setup --test
	plugins/connectors/build
	cargo build --locked --bin rampart
	cargo test --workspace --locked --test e2e a_live_partner_buys_and_sells -- --nocapture

payouts: ## Payouts on a real chain, the connector killed, the chain reorganised: each once (ARGS: how many, 200)
	@deploy/setup --test
	plugins/connectors/build
	cargo build --locked --bin rampart
	RAMPART_PAYOUTS=$(or $(ARGS),200) cargo test --workspace --locked --test e2e \
	    every_payout_is_on_the_chain_once -- --nocapture

simulate: ## Money under a million random calls and faults, the books checked after each round (ARGS: how many)
	@deploy/setup --test
	RAMPART_STEPS=$(or $(ARGS),1000000) cargo test --workspace --locked --test simulation \
	    any_interleaving_of_reports_commands_and_acts_keeps_the_books -- --nocapture

clients: ## Client libraries for Python and TypeScript from the OpenAPI document (target/clients)
	@deploy/setup --clients
	@deploy/clients

conformance: ## Hold the three APIs to their OpenAPI documents with 20,000 generated cases each (ARGS: how many)
	@deploy/setup --test
	plugins/build
	cargo build --locked --bin rampart
	RAMPART_CASES=$(or $(ARGS),20000) cargo test --workspace --locked --test e2e \
	    is_as_its_document_says -- --nocapture --test-threads=1

attack: optimised ## What the edge must refuse: 1,500 attempts and more, beside a partner that must not notice (ARGS: families)
	@deploy/setup --test
	plugins/build
	RAMPART_TEST_BINARY="$(abspath $(or $(CARGO_TARGET_DIR),target))/release/rampart" \
	    cargo test --workspace --locked --test attacks -- --full $(ARGS)
	$(if $(ARGS),,RAMPART_MODULES=2000 RAMPART_CALLS=100000 \
	    cargo test --workspace --locked --test policies -- generated_modules no_instance_finds)

chaos: ## Faults: edges and Postgres killed, answers lost, nothing acknowledged lost (ARGS: families, --long)
	@deploy/setup --test
	cargo build --locked --bin rampart
	cargo test --workspace --locked --test chaos -- --full $(ARGS)

topology: ## Edges over Patroni, etcd, HAProxy, PgBouncer, Valkey: the leader killed 20 times, a purchase each (ARGS: how many)
	@deploy/setup --topology
	cargo build --locked --bin rampart
	cargo test --workspace --locked --test topology -- --full $(ARGS)

fuzz: ## Bytes from outside against what must hold of their readers, ten minutes for each target (ARGS: targets)
	@deploy/setup --test
	RAMPART_FUZZ_SECONDS=600 cargo test --workspace --locked --lib --bins -- --nocapture \
	    $(if $(ARGS),$(addprefix fuzz_,$(ARGS)),fuzz_)

optimised: setup
	deploy/optimised cargo build --release --locked --package rampart
	@deploy/profile-fit "$${CARGO_TARGET_DIR:-target}/release/rampart"

release: optimised ## The binary that is shipped and measured, optimised with the profile, packed with checksums (RELEASE_KEY signs them)
	@deploy/release "$${CARGO_TARGET_DIR:-target}/release/rampart" "$${CARGO_TARGET_DIR:-target}/dist"

release-test: setup ## Build the release twice, in two places, and compare the bytes
	deploy/release-test

deb: optimised ## The Debian package of that binary, target/debian
	@deploy/setup --package
	deploy/licences "$${CARGO_TARGET_DIR:-target}/release/LICENSE-third-party" proxy/Cargo.toml
	cargo deb --locked --no-build --strip --package rampart

deb-test: deb ## Install it in a bare Debian under systemd: serves, upgrades under load, leaves nothing (as root)
	deploy/deb-test

compose-test: optimised ## Start the machines of compose.yaml in a bare Debian: they serve, edges are replaced under load (as root)
	@deploy/setup --package
	plugins/connectors/build
	deploy/compose-test

bare-test: ## The two commands from a first clone in bare Debian 12, 13 and Ubuntu 24.04 (ARGS="noble/root trixie/user"; as root)
	@deploy/setup --package
	deploy/bare-test $(ARGS)

bench: optimised ## Side by side with nginx, Envoy, HAProxy, hyper and pgbench (ARGS="--quick", "--only quote", "--against PATH")
	deploy/bench-setup
	plugins/build
	@ulimit -n 16384 2>/dev/null || true; \
	    PATH="$$PATH:/usr/sbin" cargo bench --locked --package rampart-tests --bench side-by-side -- $(ARGS)

profile: setup ## Write anew what the optimiser knows of an edge at work (deploy/rampart.profdata.gz)
	deploy/bench-setup --profile
	plugins/build
	@ulimit -n 16384 2>/dev/null || true; PATH="$$PATH:/usr/sbin" deploy/profile

check: ## Format, lints, checked queries, licences, advisories, unused dependencies
	@deploy/setup --check
	cargo fmt --all --check
	deploy/prepare --check cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo deny check --hide-inclusion-graph licenses bans sources
	@[ ! -e $(GUESTS) ] || { set -ex; \
	    cargo fmt --manifest-path $(GUESTS) --all --check; \
	    cargo deny --manifest-path $(GUESTS) --config .deny.toml check --hide-inclusion-graph \
	        --allow license-not-encountered licenses bans sources; }
	cargo fmt --manifest-path $(CONNECTORS) --all --check
	plugins/connectors/build --clippy
	cargo deny --manifest-path $(CONNECTORS) --config .deny.toml check --hide-inclusion-graph \
	    --allow license-not-encountered licenses bans sources
	deploy/advisories
	cargo machete

prepare: setup ## Write .sqlx/ anew, from the migrations and the queries
	deploy/prepare

openapi: setup ## Accept the OpenAPI documents as they are now: writes tests/fixtures/openapi*.json
	RAMPART_ACCEPT=1 cargo test --workspace --locked --test contract the_documents_are_the_reviewed_ones

setup: ## Install what is missing to build and run
	@deploy/setup
