# make demo   a real Kafka log, all the way: files → Delta lake → Spark stream → images → local changes; then a cluster of our own
# make test   format, lint, types, import contracts, assertions that may be skipped, tests (quick profile), the samples' tests in a bare install too
# make check  format, lint, types and the fast tests: what to run between two edits (a minute, once types are cached)
# make test-long   the same tests at full size, room by room; what each did is kept in docs/test-long.md; ROOMS='delta image' runs those
# make simulate HOURS=10000   hours of simulated clusters, in runs of 90 minutes that go on from each other, and the new states they show
# make docs   the site of docs/ with the reference of commands, Python, tables and metrics, in build/docs/site; man pages in build/man
# make wheels the sdist, and a wheel for each platform, compiled by zig: for glibc 2.17 and newer; KRAFTLAKE_HOME_PAGE=https://…
#             gives the package's description links to the site that `make docs` makes, where that is served
# make release  the wheels and the sdist, checked as an index does and installed alone, with checksums and a bill of materials, in dist/
# make bench  the benchmarks: start-up times, and ratios to Kafka's own tools and classes, delta-rs and Spark (15 minutes)

SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --use-pep517 --constraint constraints.txt
export SOURCE_DATE_EPOCH := 0
unexport PYTHONDONTWRITEBYTECODE  # the tests start Python hundreds of times, and compiling takes half of a start

.PHONY: demo check test test-long lint format docs simulate bench wheels release clean java chromium

.venv/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "kraftlake needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv .venv || { \
	  echo "Making .venv failed: on Debian and Ubuntu, 'apt-get install python3-venv' brings what is missing." >&2; rm -rf .venv; exit 1; }
	@touch $@

# What the compiled code is made of: a change of it is built and installed anew.
KERNELS := $(shell find kraftlake/kernels -name '*.py' -o -name '*.h' -o -name '*.pxd') kraftlake/runtime/__init__.py
INSTALLED := pyproject.toml constraints.txt setup.py $(wildcard build_backend/*.py) $(KERNELS)

# Each of these three has what the ones before it have, so that nothing is built twice.
.venv/runtime: .venv/python $(INSTALLED)
	@echo "Installing kraftlake into .venv (once; a few minutes on a slow line) …"
	@$(PIP) --editable '.[all]'
	@touch $@

.venv/client: .venv/python $(INSTALLED)
	@echo "Installing kraftlake and a client of Kafka's into .venv (once; a few minutes on a slow line) …"
	@$(PIP) --editable '.[all,client]'
	@touch .venv/runtime $@

.venv/dev: .venv/python $(INSTALLED)
	@echo "Installing kraftlake and the development tools into .venv (once; a few minutes on a slow line) …"
	@$(PIP) --editable '.[dev]'
	@touch .venv/runtime .venv/client $@

java: .venv/runtime
	@$(BIN)/python tools/ensure_java.py
	@$(BIN)/python -m kraftlake.spark_jobs.prepare

chromium: .venv/python
	@$(BIN)/python tools/ensure_chromium.py

demo: .venv/client java
	@bash tools/demo.sh

lint: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/skippable_assertions.py

format: .venv/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

check: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 -m fast

build/kafka-classes.jsa: .venv/dev | java
	@$(BIN)/python -m tests.archive_classes

# Types are checked on one core while archives of classes are made on the other.
test: .venv/dev
	@$(MAKE) --no-print-directory -j 2 lint java chromium build/kafka-classes.jsa
	$(BIN)/python -m tools.test_quick

test-long: lint java chromium
	@command -v promtool prometheus >/dev/null || \
	  echo "tests/ops skips the alerts and the queries: promtool and prometheus are not installed (apt: prometheus)" >&2
	KRAFTLAKE_TESTS=long $(BIN)/python -m tools.test_long $(ROOMS)

HOURS ?= 100
simulate: .venv/dev
	$(BIN)/python -m tools.simulate $(HOURS)

bench: .venv/dev java
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.image
	$(BIN)/python -m benchmarks.log
	$(BIN)/python -m benchmarks.replay
	$(BIN)/python -m benchmarks.replica_manager --kafka

docs: .venv/dev
	@$(BIN)/python -m tools.docs_site
	@$(BIN)/python -m tools.man_pages

wheels: .venv/dev
	rm -rf dist
	$(BIN)/python -m build --sdist --no-isolation
	for platform in manylinux_2_17_x86_64 manylinux_2_17_aarch64; do \
	  KRAFTLAKE_PLATFORM=$$platform $(BIN)/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist dist/*.tar.gz || exit 1; done
	$(BIN)/python -m abi3audit --strict --summary dist/*.whl

release: wheels
	$(PIP) twine cyclonedx-bom
	$(BIN)/python -m tools.release dist

clean:
	rm -rf .venv demo-lake demo-cluster demo-cluster-data .mypy_cache .ruff_cache .hypothesis build dist *.egg-info
	rm -f kraftlake/kernels/*.so
