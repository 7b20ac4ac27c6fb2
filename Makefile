# Two commands do everything on a machine that has nothing but Python 3.11 or later:
#   make demo   installs offing into .venv and runs the main job on an embedded sample log
#   make test   the same install with the tools and every extra but torch, then format, lint, types, the whole suite
#               and its branch coverage
# And: make test-torch (policies of Stable-Baselines3 and d3rlpy), make docs, make docs-serve, make paper-tables (the
# pages of docs/results/paper from their records), make format, make clean.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q install --no-compile -c constraints.txt

export JAX_PLATFORMS ?= cpu
export JAX_COMPILATION_CACHE_DIR ?= $(CURDIR)/.cache/jax

.PHONY: demo test test-torch lint format docs docs-serve paper-tables clean

demo: .venv/core
	@echo "== 20,000 logged steps of a pendulum in; a policy, what it will earn, and a verdict out (some minutes)"
	$(BIN)/offing sorel offing:pendulum --fresh --out out/demo || test $$? -eq 3 -o $$? -eq 4  # a verdict, not an error
	@echo "== the page: out/demo/report.html"

test: .venv/dev lint
	@echo "== tests"
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder -rs --cov --cov-report=term

test-torch: .venv/torch
	@echo "== policies of Stable-Baselines3 and d3rlpy"
	$(BIN)/python -m pytest tests/test_resolve.py -rs

lint: .venv/dev
	@echo "== format and lint"
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@echo "== types"
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright

format: .venv/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: .venv/docs
	@echo "== the site, strictly: out/site"
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

paper-tables: .venv/dev
	@echo "== docs/results/paper: pages and pictures from experiments/paper/records"
	$(BIN)/python -m experiments.paper all --phase draw

docs-serve: .venv/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve

.venv/python:
	@echo "== virtual environment in .venv"
	$(PYTHON) -m venv .venv
	@touch $@

.venv/core: .venv/python pyproject.toml constraints.txt
	@echo "== installing offing (about 700 MB, a minute or two)"
	$(PIP) -e .
	@touch $@

.venv/dev: .venv/core
	@echo "== installing the tools for tests, and every extra but torch"
	$(PIP) -e '.[dev,all]'
	@touch $@

.venv/torch: .venv/dev
	@echo "== installing torch and what is built on it"
	$(PIP) -e '.[dev,all,torch]'
	$(PIP) --no-deps d3rlpy
	@touch $@

.venv/docs: .venv/core
	@echo "== installing what builds the site"
	$(PIP) -e '.[docs]'
	@touch $@

clean:
	rm -rf .venv .cache out
