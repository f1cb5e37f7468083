# Two commands on a fresh machine: `make demo` and `make test`. Every target sets up what it needs.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BENCH := .cache/bench
DOCS := .cache/docs
AGENTS := .cache/agents
INSTALLERS := .cache/installers
SHAPES := .cache/shapes
WEB := .cache/web
# A lock names everything: what a package asks for besides would be looked up anew, and a new release breaks the pins.
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

# On two cores: half of a test's time is waiting for processes, clocks and disks, and of a slow one's two thirds.
WORKERS ?= 4
SLOW_WORKERS ?= 5
# The tests are compiled once, not by every process of every suite, wherever this is set.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-slow test-agents test-dist test-web test-soak check format bench bench-cheats docs dist lock clean bubblewrap faketime openssl languages
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: $(STAMP) ## watch a loop do its job, from nothing to a proven end
	$(BIN)/becket demo

test: $(STAMP) ## everything that needs only Python, git and make
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m "not slow and not agents and not dist and not web" tests

test-slow: $(STAMP) bubblewrap openssl languages $(SHAPES)/.installed ## the long matrices, the sandboxes as root and as an ordinary user (BECKET_MATRIX=wide: all of it)
	$(BIN)/python -m pytest -q -n $(SLOW_WORKERS) --dist worksteal -m "slow and not agents and not web" tests

test-agents: $(STAMP) bubblewrap openssl $(AGENTS)/.installed ## the real agent programs against a scripted model (fetches 0.9 GB into a cache of its own)
	BECKET_AGENTS=$(CURDIR)/$(AGENTS)/node_modules/.bin $(BIN)/python -m pytest -q -n 2 --dist worksteal -m agents tests

test-dist: dist $(INSTALLERS)/.installed ## install the wheel with uv and with pipx into clean homes, and use it
	BECKET_INSTALLERS=$(CURDIR)/$(INSTALLERS)/bin $(BIN)/python -m pytest -q -m dist tests/packages

test-web: $(WEB)/.installed chromium ## look at the page with a real browser (pictures of every page in .cache/web/shots)
	BECKET_WEB=$(CURDIR)/$(WEB) $(WEB)/bin/python -m pytest -q -n 2 --dist loadfile -m web tests/web

test-soak: $(STAMP) faketime ## faults without end: simulated weeks, then a real hour (SOAK_MINUTES, SOAK_SEED)
	$(BIN)/python tests/soak/weeks.py --weeks 4 --seed $(or $(SOAK_SEED),1)
	$(BIN)/python tests/soak/hour.py --minutes $(or $(SOAK_MINUTES),60) $(if $(SOAK_SEED),--seed $(SOAK_SEED))

check: $(STAMP) ## formatting, lint, types and the walls between the rooms
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/unit/test_rooms.py

format: $(STAMP) ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(BENCH)/.installed ## what the engine and the heal loop cost, beside the physical limit, their peers and a shell script
	$(BENCH)/bin/python bench/engine.py $(BENCH_ARGS)
	$(BENCH)/bin/python bench/heal.py $(BENCH_ARGS)
	$(BENCH)/bin/python bench/agents.py $(BENCH_ARGS)
	$(BENCH)/bin/python bench/front.py $(BENCH_ARGS)

bench-cheats: $(STAMP) ## let agents cheat in scratch repositories, and count what gets through
	$(BIN)/becket bench cheats $(BENCH_ARGS)

dist: $(STAMP) ## build the packages into dist/, and see that they hold what they should and nothing else
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist
	$(BIN)/python tests/packages/content.py dist

docs: $(DOCS)/.installed $(STAMP) ## build the documentation, strictly
	$(BIN)/python docs/_generate.py --check
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict --quiet --site-dir .cache/site

lock: ## choose new versions of the dependencies (needs uv)
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --quiet --upgrade pyproject.toml --extra postgres --group dev -o requirements/dev.lock
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --quiet --upgrade pyproject.toml --group bench -c requirements/dev.lock -o requirements/bench.lock
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --quiet --upgrade --group docs -o requirements/docs.lock
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --quiet --upgrade pyproject.toml --group web -c requirements/dev.lock -o requirements/web.lock
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --quiet --upgrade --group dist -o requirements/dist.lock

clean: ## remove everything that make has made
	rm -rf $(VENV) .cache dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

bubblewrap:
	@command -v bwrap >/dev/null || { echo "installing bubblewrap"; $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq bubblewrap >/dev/null; }

faketime:
	@ls /usr/lib/*/faketime/libfaketimeMT.so.1 >/dev/null 2>&1 || { echo "installing faketime"; $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq faketime >/dev/null; }

openssl:
	@command -v openssl >/dev/null || { echo "installing openssl"; $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq openssl >/dev/null; }

chromium:
	@want=""; command -v chromium >/dev/null || want="chromium"; ls /usr/share/fonts/opentype/noto/NotoSansCJK-*.ttc >/dev/null 2>&1 || want="$$want fonts-noto-cjk"; \
	[ -z "$$want" ] || { echo "installing $$want"; $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq $$want >/dev/null; }

# In /usr/bin: a tool below HOME is not seen by what runs contained.
languages:
	@want=""; for need in node:nodejs go:golang-go cargo:cargo cc:gcc rake:rake bundle:bundler meson:meson cmake:cmake git-lfs:git-lfs; do [ -x /usr/bin/$${need%%:*} ] || want="$$want $${need##*:}"; done; \
	[ -z "$$want" ] || { echo "installing$$want"; $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq $$want >/dev/null; }

# The tools of other people's projects, to try what `becket init` proposes.
$(SHAPES)/.installed: | languages
	@command -v npm >/dev/null || { echo "installing npm"; $(SUDO) apt-get install -y -qq npm >/dev/null; }
	$(PYTHON) -m venv $(SHAPES)
	$(SHAPES)/bin/python $(PIP_INSTALL) uv
	npm install --silent --no-save --prefix $(SHAPES) pnpm@9 yarn@1
	@touch $@

$(STAMP): requirements/dev.lock pyproject.toml lab/pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP_INSTALL) --no-deps --require-hashes -r requirements/dev.lock
	$(BIN)/python $(PIP_INSTALL) --no-deps --no-build-isolation -e . -e lab
	@touch $@

$(BENCH)/.installed: requirements/bench.lock pyproject.toml lab/pyproject.toml
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python $(PIP_INSTALL) --no-deps --require-hashes -r requirements/bench.lock
	$(BENCH)/bin/python $(PIP_INSTALL) --no-deps --no-build-isolation -e . -e lab
	@touch $@

$(AGENTS)/.installed: requirements/agents/package.json requirements/agents/package-lock.json
	@command -v npm >/dev/null || { echo "installing npm"; $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq nodejs npm >/dev/null; }
	@node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' || { echo "the agent programs need Node 20 or newer; this is $$(node --version)"; exit 1; }
	mkdir -p $(AGENTS) && cp requirements/agents/*.json $(AGENTS)
	cd $(AGENTS) && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

$(WEB)/.installed: requirements/web.lock requirements/web/package.json requirements/web/package-lock.json pyproject.toml
	@command -v npm >/dev/null || { echo "installing npm"; $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq nodejs npm >/dev/null; }
	$(PYTHON) -m venv $(WEB)
	$(WEB)/bin/python $(PIP_INSTALL) --no-deps --require-hashes -r requirements/web.lock
	$(WEB)/bin/python $(PIP_INSTALL) --no-deps --no-build-isolation -e .
	cp requirements/web/*.json $(WEB) && cd $(WEB) && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

$(DOCS)/.installed: requirements/docs.lock
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python $(PIP_INSTALL) --no-deps --require-hashes -r requirements/docs.lock
	@touch $@

$(INSTALLERS)/.installed: requirements/dist.lock
	$(PYTHON) -m venv $(INSTALLERS)
	$(INSTALLERS)/bin/python $(PIP_INSTALL) --no-deps --require-hashes -r requirements/dist.lock
	@touch $@
