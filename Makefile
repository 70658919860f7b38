# On a fresh machine, use `make compare` and `make test`. All other targets are for development.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTANCE ?= gen/200jobs
# The lock file pins every package that the extras below may install, and the build backend.
PIP := PIP_CONSTRAINT=requirements.lock PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --quiet

.PHONY: install dev compare notebooks test test-thorough bench faults lint docs reference keep-reference keep-lesson09 \
  growth keep-growth reproduce reproduce-whole keep-reproductions keep-reproductions-whole \
  properties keep-properties lock clean

install: $(VENV)/.installed
dev: $(VENV)/.dev

$(VENV)/.installed: pyproject.toml requirements.lock
	@echo "step 1 of 2: downloading and installing packages into $(VENV) (about 60; takes one to three minutes)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --editable .
	@echo "step 2 of 2: compiling inner loops (once; takes one or two minutes)"
	@-$(BIN)/harness compare --instance paper/hadar-fig1 --instance paper/synergy-example --instance paper/walkthrough \
	  --method 'hadar.*' --method 'synergy.tune*' --method 'zhou.*.online' --method zhou.ps.columns \
	  --method admission.online --method 'rigid.*' --no-report --jobs 1 --results $(VENV)/warm-up >/dev/null 2>&1
	@touch $@

$(VENV)/.dev: $(VENV)/.installed
	$(PIP) --editable '.[dev]'
	@touch $@

compare: install
	$(BIN)/harness compare --instance '$(INSTANCE)'

# Python must keep compiled files even if this is set: otherwise every process that tests start compiles them again.
unexport PYTHONDONTWRITEBYTECODE

# Each test file runs in one process, so that its tests share results. Long files come first, see tests/conftest.py.
test: dev
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

# The same tests, with eight times as many examples for each property that does not set its own number.
test-thorough:
	HYPOTHESIS_PROFILE=thorough $(MAKE) test

# Run the reference sweep and compare it with the stored one; `make keep-reference` replaces that. Gaps after a minute
# are measured as well, for docs/results.md; they depend on the machine, and are not compared.
REFERENCE := build/reference
reference: install
	@rm -rf $(REFERENCE) && mkdir -p $(REFERENCE)
	$(BIN)/harness sweep sweeps/reference.toml --no-report --results $(REFERENCE) --format csv >$(REFERENCE)/rows.csv
	$(BIN)/harness compare --instance gen/200jobs --no-report --results $(REFERENCE)/minute --format csv \
	  >$(REFERENCE)/minute.csv
	$(BIN)/harness diff results/reference $(REFERENCE)/*-* --tolerance 1e-3

# How solve times grow with size, for the page on growth: about 20 minutes of one core. SIZES=large goes to 5,000 jobs, in
# a quarter of an hour.
SIZES := jobs tenants whole
growth: install
	@rm -rf build/growth
	for one in $(SIZES); do \
	  $(BIN)/harness sweep sweeps/growth/$$one.toml --no-report --jobs 1 --results build/growth/$$one || exit 1; done

# Keep the rows, with the machine and its load; schedules of 5,000 jobs would be megabytes.
keep-growth:
	for one in $(SIZES); do $(BIN)/python sweeps/keep.py build/growth/$$one/*-* results/growth/$$one.json || exit 1; done

keep-reference:
	cd results/reference && rm -rf instances schedules certificates
	cd $(REFERENCE)/*-* && cp -r run.json journal.jsonl *.parquet instances schedules certificates \
	  ../minute.csv $(CURDIR)/results/reference

# The same for the verdicts on the papers' figures and tables: small versions, or full ones, which take two hours.
REPRODUCED = build/$(SIZE)
reproduce keep-reproductions: SIZE := reproductions
reproduce-whole keep-reproductions-whole: SIZE := reproductions-whole
reproduce reproduce-whole: install
	@rm -rf $(REPRODUCED) && mkdir -p $(REPRODUCED)
	$(BIN)/harness reproduce all $(if $(filter reproduce,$@),--quick) --results $(REPRODUCED)
	$(BIN)/harness diff results/$(SIZE).json $(REPRODUCED)/*-*

keep-reproductions keep-reproductions-whole:
	$(BIN)/python results/keep.py results/$(SIZE).json $(REPRODUCED)/*-*

# Search for situations in which mechanisms of OEF lack a property, and keep the smallest; about an hour of a core.
PROPERTIES := build/properties
properties: install
	@rm -rf $(PROPERTIES) && mkdir -p $(PROPERTIES)
	$(BIN)/harness audit --claim 'oef.property.*' --effort 10 --results $(PROPERTIES)

keep-properties:
	$(BIN)/python results/keep.py harness/studies/audit/claims/properties.json $(PROPERTIES)/*-audit

# Run the sweep that lesson 09 reads, and keep it. Its searches are limited by a count, and find the same everywhere.
KEPT := build/lesson09
keep-lesson09: install
	@rm -rf $(KEPT) && mkdir -p $(KEPT)
	$(BIN)/harness sweep sweeps/lesson09.toml --no-report --results $(KEPT) --format csv >$(KEPT)/rows.csv
	$(BIN)/python sweeps/keep.py $(KEPT)/*-compare results/lesson09

bench: dev
	@mkdir -p results/bench
	$(BIN)/python -m pytest tests/benchmarks -p no:cacheprovider --benchmark-only -q \
	  --override-ini='addopts=' --benchmark-disable-gc --benchmark-quiet --benchmark-json=results/bench/timings.json

# Kill runs at random moments, about FAULTS times.
faults: dev
	$(BIN)/python -m pytest tests/faults -p no:cacheprovider --override-ini='addopts=' -q -x

lint: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Open the lessons in the browser, with their list in front; the first time installs Jupyter. Without this setting, the
# list would open as text to edit.
LAB := $(VENV)/etc/jupyter/labconfig
notebooks: $(VENV)/.notebooks
	$(BIN)/jupyter lab notebooks/ --LabApp.default_url=/lab/tree/README.md

$(VENV)/.notebooks: $(VENV)/.installed
	$(PIP) --editable '.[notebooks]'
	@mkdir -p $(LAB)
	@echo '{"@jupyterlab/docmanager-extension:plugin": {"defaultViewers": {"markdown": "Markdown Preview"}}}' \
	  >$(LAB)/default_setting_overrides.json
	@touch $@

# Build the site in build/docs/index.html. Lessons are executed; their outputs are cached until they or the code change.
docs: dev
	$(PIP) --editable '.[docs]'
	$(BIN)/sphinx-build -W --keep-going -q -j auto docs build/docs
	$(BIN)/python -m pytest tests/site -p no:cacheprovider --override-ini='addopts=' -q

lock:
	rm -rf $(VENV)-lock && $(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/pip install --quiet '.[dev,dask,docs,gpu,notebooks,solvers]'
	$(VENV)-lock/bin/pip freeze --exclude schedgap > requirements.lock
	rm -rf $(VENV)-lock

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache
