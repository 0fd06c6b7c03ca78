# `make demo` and `make test` create .venv if it does not exist.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Two processes more than cores: tests wait for a browser, Java, a disk or each other a fifth of the time.
JOBS ?= 4
SEED := $(or $(SEED),$(shell date +%s))
PEERS := .venv-peers/tmlt
TUMULT_CORE := tmlt.core==0.20.0 typeguard==4.4.4 randomgen==2.3.0

.PHONY: demo check test suite test-slow test-peers test-all bench bench-peers docs lint lock clean fuzz load mutants mutants-random audit-deps

# In the environment of the tests if there is one; otherwise in one of its own, with what the demo needs and nothing else.
DEMO := $(if $(wildcard $(READY)),$(VENV),.venv-demo)
demo: $(DEMO)/.ready
	$(DEMO)/bin/python -m recordwise demo

.venv-demo/.ready: requirements-demo.lock pyproject.toml
	$(PYTHON) -c "import sys; assert (3, 11) <= sys.version_info < (3, 15), 'the demo needs Python 3.11 to 3.14; choose one with make PYTHON=python3.12'"
	$(PYTHON) -m venv --clear .venv-demo
	@echo "Installing what the demo needs, once; this takes a minute or two ..."
	.venv-demo/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-demo.lock
	.venv-demo/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	touch $@

# The inner loop: without Java, a browser, other processes and tests that take long. make test runs everything.
check: lint
	$(BIN)/python -m pytest --workers 2 -m "not (slow or spark or browser or process or costly)"

# Types are checked by one process, which takes long in a new clone: beside the tests. Both must pass.
test: $(READY)
	$(MAKE) -j 2 lint suite

suite: $(READY)
	$(BIN)/python -m pytest --workers $(JOBS)

# All long runs, or those of one folder or file of tests/: make test-slow PART=policy. Then the short ones that need no Spark, in a random
# order: the seed is printed, and make test-slow SEED=n repeats it.
test-slow: $(READY)
	$(BIN)/python -m pytest --workers $(JOBS) -m slow --timeout 3600 $(addprefix tests/,$(PART))
	$(BIN)/python -m pytest --workers $(JOBS) --shuffled $(SEED) $(addprefix tests/,$(PART))

# Laws and draws against Tumult Core. It is installed apart and without its dependencies, some of which exclude ours; where it is missing
# the tests fail.
test-peers: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target $(PEERS) $(TUMULT_CORE)
	RECORDWISE_REQUIRE_ALL=1 PYTHONPATH=$(PEERS) $(BIN)/python -m pytest -m slow tests/mechanisms/test_mechanism_peers.py

# The suite, or PART of it, on every supported Python with the newest and the oldest dependencies; interpreters that are not here are named.
test-all: $(READY)
	$(BIN)/python -m supply.matrix $(addprefix tests/,$(PART))

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/python -m benchmarks

# The same task in other libraries, each in its own environment; this downloads them, and Tumult Analytics needs Java.
bench-peers: $(READY)
	$(BIN)/python -m benchmarks.peers

# A million hostile inputs; findings are kept in fuzz-findings/. For fewer, or one kind: python -m fuzz --inputs 10000 sql
fuzz: $(READY)
	$(BIN)/python -m fuzz

# A hundred million rows, five million cells, ten thousand queries, thirty-two processes. Needs 4 GB of disk; python -m load --small runs a small version.
load: $(READY)
	$(BIN)/python -m load

# Plants some five hundred deliberate bugs, one at a time, to see whether the tests notice. For one area or bug: python -m mutants noise
mutants: $(READY)
	$(BIN)/python -m mutants --jobs $(JOBS)

# Bugs drawn at random: make mutants-random SEED=7 COUNT=150, with ONLY=policy/ for one room. What the tests reach is found out once,
# in some twenty minutes, and kept in .mutants/; python -m mutants.reach does it anew. Survivors are judged in mutants/judged.toml;
# python -m mutants.at_random --seed 7 --again --all-tests runs them once more against every test that reaches them.
SEED ?= 1
COUNT ?= 150
mutants-random: $(READY) .mutants/reach.npz
	$(BIN)/python -m mutants.at_random --seed $(SEED) --count $(COUNT) --jobs $(JOBS) $(if $(ONLY),--only $(ONLY))

.mutants/reach.npz:
	$(BIN)/python -m mutants.reach --jobs $(JOBS)

# Checks the lock file, licenses and known vulnerabilities. Exits with 2 and a message if the vulnerability service cannot be reached.
audit-deps: $(READY)
	$(BIN)/python -m supply

docs: $(READY)
	$(BIN)/zensical build --strict

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -c "import sys; assert (3, 11) <= sys.version_info < (3, 15), 'the tests need Python 3.11 to 3.14; choose one with make PYTHON=python3.12'"
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

# Needs uv on the PATH; no other target does.
lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header --extra dev pyproject.toml -o requirements.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header --extra demo --constraint requirements.lock pyproject.toml -o requirements-demo.lock

clean:
	rm -rf $(VENV) .venv-demo .venv-peers .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .mutants site
