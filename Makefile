# The few commands that matter. `make test` needs nothing but a Python from 3.11 on and a C
# compiler; it makes its own virtual environment.

PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3.14 python3; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& command -v $$p && break; done)
VENV ?= .venv
BIN = $(VENV)/bin
export PATH := $(abspath $(BIN)):$(PATH)
SOURCES = $(wildcard onemodel/*/*.pyx onemodel/*/*.pxd onemodel/*/*.h)

.PHONY: test lint build bench stress fuzz platforms platforms-ci platforms-full sanitizers versions
.PHONY: free-threaded wasm wasm-test wasm-browser-test wasm-benchmark page site clean

test: lint
	$(BIN)/python -m pytest

lint: build
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/cython-lint onemodel
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest onemodel --ignore-disjoint-bases \
		--mypy-config-file pyproject.toml --allowlist tools/stubtest-allowlist.txt

build: $(VENV)/.built

$(VENV)/.installed: pyproject.toml
	@test -n "$(PYTHON)" || { echo "no Python from 3.11 on with venv was found"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip 'setuptools>=77' 'Cython>=3.2'
	$(BIN)/pip install --quiet --no-build-isolation --editable '.[test,lint]'
	touch $@
	touch $(VENV)/.built

# an editable install builds in place; afterwards only what changed is built again
$(VENV)/.built: $(VENV)/.installed $(SOURCES) setup.py
	$(BIN)/python setup.py --quiet build_ext --inplace
	touch $@

# `make bench PARTS="workers trainer auto" BENCH="--quick"` runs some; `make bench AGAINST=PATH`
# times this checkout beside another one that is built.
bench: build
	$(BIN)/pip install --quiet --no-build-isolation --editable '.[bench]'
	$(BIN)/python -m $(if $(AGAINST),benchmarks.against $(AGAINST),benchmarks $(PARTS)) $(BENCH)

# Every way to end a run, 200 times each; CI runs each five times, in tests/test_stress.py.
stress: build
	$(BIN)/python tools/stress.py
	$(BIN)/python tools/stress_threads.py

# Damaged tables, states, reports and folders, and kernels beside their twins, SECONDS each.
SECONDS ?= 60
fuzz: build
	$(BIN)/python tools/fuzz.py --seconds $(SECONDS)

# The canonical batches on other machines, compilers and processors: docs/platforms.md.
platforms-ci: build
	$(BIN)/python tools/platforms/check.py --ci --tests none

platforms: build
	$(BIN)/python tools/platforms/check.py --write

platforms-full: build sanitizers versions free-threaded
	$(BIN)/python tools/platforms/check.py --tests all --write

sanitizers: build
	for kind in address thread; do \
		PYTHON=$(abspath $(BIN))/python tools/platforms/sanitize.sh $$kind --planted && \
		PYTHON=$(abspath $(BIN))/python tools/platforms/sanitize.sh $$kind || exit 1; \
	done

# Every Python that is here, with its oldest and its newest NumPy.
versions:
	tools/platforms/versions.sh

# The suite on a CPython without the GIL, built from Debian's source package into a cache; then the
# engine's tests with ThreadSanitizer in CPython as well.
free-threaded:
	tools/free-threaded.sh
	tools/free-threaded.sh --thread-sanitizer

wasm:
	wasm/build.sh

# The same suite in Pyodide under Node; then in headless Chromium the batches and the demo page.
wasm-test: wasm
	node wasm/test-node.mjs -q

wasm-browser-test: wasm build
	PYTHON=$(abspath $(BIN))/python node wasm/test-browser.mjs
	PYTHON=$(abspath $(BIN))/python node wasm/test-examples.mjs
	PYTHON=$(abspath $(BIN))/python node wasm/test-demo.mjs
	@! command -v firefox-esr firefox >/dev/null || \
		PYTHON=$(abspath $(BIN))/python node wasm/test-demo.mjs --browser firefox

# The demo page as a folder that any static host serves: dist/page, or PAGE=FOLDER.
PAGE ?= dist/page
export PROJECT_URL PAGE_URL GUIDES_URL
page: wasm
	node wasm/demo/publish.mjs $(PAGE)

# The documentation as a static site with the page in it: dist/site, or SITE=FOLDER.
SITE ?= dist/site
site: build
	$(MAKE) page GUIDES_URL=../
	$(BIN)/pip install --quiet --no-build-isolation --editable '.[docs]'
	$(BIN)/python tools/build_site.py $(SITE) $(PAGE)

wasm-benchmark: wasm build
	PYTHON=$(abspath $(BIN))/python node benchmarks/wasm.mjs

clean:
	rm -rf build dist *.egg-info $(VENV) wasm/dist onemodel/*/*.c onemodel/*/*.so onemodel/*/*.pyd
