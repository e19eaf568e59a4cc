# Fresh clone, Python 3.11 or newer: `make demo`. Everything installs itself into .venv.
HALO = .venv/bin/halo
ARGS ?=
.DEFAULT_GOAL := help
.PHONY: help demo up test test-tools soak check docs fmt bench clean

help:
	@echo 'make demo    watch a conversation become a reviewed, published prompt change'
	@echo 'make up      run Halo on http://127.0.0.1:8000'
	@echo 'make test    install what tests need and run them (ARGS="tests/site -k help" narrows)'
	@echo 'make soak    the longer state-machine, kill and race runs'
	@echo 'make check   ruff, mypy, import contracts, migrations, deployment checks'
	@echo 'make bench   measure, print the table, write bench/RESULTS.md'
	@echo 'make docs    write docs/settings.md from the schema'
	@echo 'make fmt     format and mend what ruff can mend'

.venv/installed-run: pyproject.toml scripts/setup
	@scripts/setup run

.venv/installed-dev: pyproject.toml scripts/setup
	@scripts/setup dev

demo: .venv/installed-run
	@$(HALO) demo $(ARGS)

up: .venv/installed-run
	@$(HALO) up $(ARGS)

test-tools: .venv/installed-dev
	@scripts/setup-tests

test: test-tools
	@.venv/bin/python -m pytest -n auto $(ARGS)

soak: test-tools
	@.venv/bin/python -m pytest -n auto -m soak $(ARGS)

check: .venv/installed-dev
	@scripts/check

docs: .venv/installed-dev
	@.venv/bin/python -m core.settings_docs > docs/settings.md

fmt: .venv/installed-dev
	@.venv/bin/ruff check --fix .
	@.venv/bin/ruff format .

bench: .venv/installed-dev
	@.venv/bin/python -m bench $(ARGS)

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
