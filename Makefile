# Every target makes its own virtual environment and needs nothing but python3 (3.11+) with pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp-dev
# compiled once and kept with the environment, whatever the caller's shell says
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/$(VENV)/pycache
.DEFAULT_GOAL := help
.PHONY: help setup run demo test test-other test-real soak flakes check image release-check bench docs clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(VENV)/.stamp-base: requirements/base.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; set PYTHON=")'
	@$(PYTHON) -c 'import sysconfig; "musl" in (sysconfig.get_config_var("HOST_GNU_TYPE") or "") and print("google-re2 has no wheel for musl: a compiler, re2 and abseil must be installed (Alpine: apk add g++ re2-dev abseil-cpp-dev py3-pybind11-dev)")'
	@echo "Installing Clusterwright into $(VENV): about a minute, only the first time"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/base.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(STAMP): $(VENV)/.stamp-base requirements/dev.txt
	@echo "Installing what tests and checks need"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	-@$(BIN)/python -m pytest -q --collect-only -m "not soak and not real" tests >/dev/null  # modules are compiled once, not by each worker of `make test`
	@touch $@

setup: $(STAMP) ## create .venv with locked dependencies

run: $(VENV)/.stamp-base ## start the management plane, bring up a cluster and show it; ENGINE=docker (auto, podman, unix:///PATH): a real one
	$(BIN)/clusterwright up --demo $(if $(ENGINE),--engine $(ENGINE))

demo: $(VENV)/.stamp-base ## a tour that ends by itself: create, scale, upgrade, break, explain, repair, delete
	$(BIN)/clusterwright tour

# a file stays with one worker: what its tests share, a played corpus or a server, is made once;
# three workers for two cores, because some tests wait more than they work
test: $(STAMP) ## run all tests
	$(BIN)/python -m pytest -q -n 3 --dist loadfile --no-loadscope-reorder -m "not soak and not real" tests

# what rests on the interpreter: event loop, TLS, SQLite, HTTP, certificates, key material, templates
SLICE := tests/api tests/conditions tests/tables tests/streams tests/kubeadm tests/runtime tests/workload tests/simulation \
	tests/apiserver/test_http.py tests/apiserver/test_persistence.py tests/security/test_store.py tests/security/test_template_costs.py

test-other: ## a fast slice of the tests on another Python, in .venv-other; OTHER=python3.13
	$(if $(OTHER),,$(error set OTHER, for instance OTHER=python3.13))
	$(OTHER) -m venv .venv-other
	.venv-other/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/base.txt
	.venv-other/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	.venv-other/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	PYTHONPYCACHEPREFIX=$(CURDIR)/.venv-other/pycache .venv-other/bin/python -m pytest -q -n 2 --dist loadfile -m "not soak and not real" $(SLICE)

test-real: $(STAMP) ## the same controllers on a real kube-apiserver; KUBEBUILDER_ASSETS names the folder with kube-apiserver and etcd, UPSTREAM_MANAGERS those of upstream's binaries, one for each version, UPSTREAM_SOURCE a checkout of its source
	$(BIN)/python -m pytest -v -rs -m real tests

# what a run logs is not kept: that would cost more than the run, and its seed repeats it
soak: $(STAMP) ## run the full seeded counts
	$(BIN)/python -m pytest -q -n 2 -p no:logging -m soak tests

flakes: $(STAMP) ## 20 runs, under load, of all tests that use processes, sockets and real time
	$(BIN)/python tests/flakes.py

check: $(STAMP) ## format, lint, types, imports, generated documents, dependencies
	$(BIN)/ruff format --check src tests bench tools
	$(BIN)/ruff check src tests bench tools
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.docs --check
	$(BIN)/python tools/plain_english.py
	$(BIN)/python -m tools.dependencies --check
	$(BIN)/python tests/documentation/outputs.py --check

$(VENV)/.stamp-docs: $(STAMP) requirements/docs.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/docs.txt
	touch $@

docs: $(VENV)/.stamp-docs ## render what docs/ shows of the code and its outputs, and build the site in build/site
	$(BIN)/python -m tools.docs
	$(BIN)/python -m tools.dependencies
	$(BIN)/python tests/documentation/outputs.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

image: $(VENV)/.stamp-base ## the manager's image as an OCI layout in build/image, without a daemon; BASE=DIR: on another layout
	$(BIN)/python -m tools.image --output build/image $(if $(BASE),--base $(BASE))

release-check: $(STAMP) ## try everything of a release without making one: reproducible packages, wheels on every Python, SBOM, digests
	$(BIN)/python -m tools.release

$(VENV)/.stamp-bench: $(STAMP) requirements/bench.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bench.txt
	touch $@

bench: $(VENV)/.stamp-bench ## run the benchmarks side by side
	for b in up apiserver admission runtime scale shards topology; do $(BIN)/python -m bench.$$b; done

clean: ## remove what the targets made
	rm -rf $(VENV) .venv-other .mypy_cache .ruff_cache .hypothesis build dist
