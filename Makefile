# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0

# A machine needs Python 3.11 or newer with its headers, and make. The rest is set up by the targets: .venv, and in it
# Go and a C compiler where the machine has none. Stamps in .venv say what has been done.

VENV ?= .venv
INTEROP_VENV ?= .venv-interop
export PIP_DISABLE_PIP_VERSION_CHECK := 1
PY := $(VENV)/bin/python
# Everything that runs Go does so in a shell that read this: GO, CC, CGO_CFLAGS. It is written here and not in scripts,
# because it says where this machine has them.
TOOLS := $(VENV)/tools.sh
MODULE := python/cudago/_core.abi3.so

# The first Python that is new enough; override with BASE_PYTHON=/path/to/python.
BASE_PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13 python3.14; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

SOURCES := $(shell find cuda dlpack graph internal pyext -name '*.go' ! -name '*_test.go' -o -name '*.[chS]') \
	go.mod go.sum pyext/exports.map build_hooks/extension.py python/cudago/_version.py
GENERATED := $(wildcard cuda/z*.go internal/ptxvm/lane/z*.go cuda/internal/driver/z*.go cuda/internal/driver/*/z* \
	cuda/internal/driver/nvidia/testdata/z* pyext/z* pyext/border/z* \
	python/cudago/_gopy/*.py python/cudago/_z*.py docs/reference/ptx.rst docs/reference/performance.rst docs/reference/order.rst)

# Packages whose own files use cgo are tested without the race detector: it sees nothing of C. Package ptxvm and those below
# it are tested both ways: beside the detector they try few numbers.
CGO_FILES := {{if .CgoFiles}}{{.ImportPath}}{{end}}
PURE_FILES := {{if not .CgoFiles}}{{.ImportPath}}{{end}}
GO_TEST_FLAGS ?=
PYTEST_FLAGS ?= -q
# Processes that the Python tests run in on the simulated driver: each file in one of them. 0: in pytest's own, for --pdb.
# One that crashes gets no successor, which would run into the same test again.
PYTEST_PROCESSES ?= 2
PYTEST_SHARING := -n $(PYTEST_PROCESSES) --dist loadfile --max-worker-restart 0

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# --- environments ------------------------------------------------------------

$(VENV)/made:
	@test -n "$(BASE_PYTHON)" || { echo 'cudago needs Python 3.11 or newer; none was found on PATH' >&2; exit 1; }
	$(BASE_PYTHON) -m venv $(VENV)
	@touch $@

$(TOOLS): build_hooks/extension.py $(VENV)/made
	@$(PY) build_hooks/extension.py --environment > $@

$(VENV)/packages: pyproject.toml $(TOOLS)
	@. $(TOOLS) && $(PY) scripts/pip_steps.py install -e '.[sim,test,demo]'
	@touch $@

# Tools that only make lint, gen and docs need.
$(VENV)/tools: $(VENV)/packages
	@. $(TOOLS) && $(PY) scripts/pip_steps.py install -e '.[docs,lint]'
	@touch $@

# pip has built the module once; after that, changes only need this.
$(MODULE): $(SOURCES) $(TOOLS) | $(VENV)/packages
	@. $(TOOLS) && $(PY) build_hooks/extension.py

# A build of its own beside the module: every access of its C and Go to C's memory is checked.
ASAN_MODULE := build/asan/cudago/_core.abi3.so
$(ASAN_MODULE): $(SOURCES) $(wildcard python/cudago/*.py) build_hooks/asan.py $(TOOLS) | $(VENV)/packages
	@. $(TOOLS) && $(PY) build_hooks/asan.py

# --- use -----------------------------------------------------------------------

.PHONY: demo build notebooks asan wheel wheels wheel-check audit
demo: $(MODULE) ## train and run a digit recognizer on whatever driver there is
	$(PY) examples/digits.py

build: $(MODULE) ## build the native module in place

notebooks: $(MODULE) ## run the texts in notebooks/source, and write them as notebooks
	$(PY) notebooks/build.py

asan: $(ASAN_MODULE) ## build the native module under AddressSanitizer, into build/asan

# What a wheel is built with is named by hash, which pip's own environments cannot do.
BUILDERS := $(VENV)/builders
BUILD_WHEEL := $(BUILDERS)/bin/python scripts/pip_steps.py wheel --no-build-isolation --no-deps -w dist .
$(BUILDERS)/made: $(VENV)/made
	$(PY) -m venv $(BUILDERS)
	@touch $@

$(BUILDERS)/%: build_hooks/%.txt $(BUILDERS)/made
	$(BUILDERS)/bin/python -m pip install -q --require-hashes --no-deps --only-binary :all: -r $<
	@touch $@

wheel: $(BUILDERS)/requirements $(TOOLS) ## build the wheel into dist/
	@. $(TOOLS) && $(BUILD_WHEEL)

# With the registry's C compiler, which knows an older C library than this machine's, and other machines.
WHEEL_MACHINES ?= x86_64 aarch64
wheels: $(BUILDERS)/requirements $(BUILDERS)/compilers $(TOOLS) ## build the wheels for others into dist/: manylinux_2_28, on x86-64 and aarch64
	@. $(TOOLS) && for m in $(WHEEL_MACHINES); do \
		CUDAGO_WHEEL_MACHINE=$$m $(BUILD_WHEEL) || exit 1; done

# WHEEL_MACHINE says which one of make wheels; without it it is that of make wheel.
WHEEL_MACHINE ?=
wheel-check: $(VENV)/packages $(BUILDERS)/requirements ## check a wheel in dist/: size, licences, auditwheel, an installation, the same bytes from the sdist
	@. $(TOOLS) && CUDAGO_WHEEL_MACHINE=$(WHEEL_MACHINE) $(PY) scripts/wheel_check.py

# Both ask services for what is known; neither is part of the tests, which need no network.
audit: $(VENV)/tools ## known vulnerabilities of what is linked in (govulncheck), and of the Python packages here (pip-audit)
	@. $(TOOLS) && $(PY) scripts/audit.py

# --- tests ---------------------------------------------------------------------

FUZZTIME ?= 5s
FUZZ ?=
.PHONY: fuzz
fuzz: $(MODULE) ## the fuzz targets of the Go packages and graph files, or those named in FUZZ, each for FUZZTIME
	@. $(TOOLS) && PY=$(PY) FUZZTIME=$(FUZZTIME) scripts/fuzz.sh $(FUZZ)

.PHONY: test test-go test-sweep test-py test-hostile soak test-interop test-gpu
test: test-go test-py ## all tests that need no GPU and no other framework

test-go: $(TOOLS) ## go vet and the Go tests; with the race detector where there is no C
	. $(TOOLS) && "$$GO" vet ./...
	. $(TOOLS) && "$$GO" test -race -tags cudagotest $(GO_TEST_FLAGS) $$("$$GO" list -f '$(PURE_FILES)' ./...)
	. $(TOOLS) && "$$GO" test $(GO_TEST_FLAGS) ./internal/ptxvm/... $$("$$GO" list -f '$(CGO_FILES)' ./...)

test-sweep: $(TOOLS) ## all 2^32 inputs through each operation of the simulated device; some 9 core-hours
	. $(TOOLS) && "$$GO" test ./internal/ptxvm/sweep -run Sweep -sweep=full -v -timeout 24h

# A process has one driver, so each driver has its run.
test-py: $(MODULE) ## the Python tests, on every driver that this machine has
	CUDAGO_DRIVER=sim CUDAGO_REQUIRE_GPU= $(PY) -m pytest $(PYTEST_SHARING) $(PYTEST_FLAGS) tests_py
	@if [ -n "$$CUDAGO_REQUIRE_GPU" ] || CUDAGO_DRIVER=nvidia $(PY) -c 'import cudago; cudago.Device()' 2> /dev/null; \
	then CUDAGO_DRIVER=nvidia $(PY) -m pytest $(PYTEST_FLAGS) tests_py; \
	else echo "no GPU here: nothing ran on NVIDIA's driver"; fi

# HOSTILE=full tries everything, which takes an hour or more; HOSTILE_FLAGS are those of the program: --help lists them.
HOSTILE ?= quick
HOSTILE_FLAGS ?=
test-hostile: $(ASAN_MODULE) ## everything public, called with hostile arguments, beside threads and signals, and exits, under AddressSanitizer
	PYTHONPATH=tests_py $(PY) build_hooks/asan.py $(PY) -m hostile --hostile=$(HOSTILE) $(HOSTILE_FLAGS)
	CUDAGO_DRIVER=sim $(PY) build_hooks/asan.py $(PY) -m pytest $(PYTEST_FLAGS) tests_py/exit/test_exit.py

# On NVIDIA's driver: CUDAGO_DRIVER=nvidia, with the wheel alone; tests_py/soak needs nothing else.
SECONDS ?= 60
THREADS ?= 64
ROUNDS ?= 2000
FAULTS ?= 0
SEED ?= 1
BUILDS ?= 100000
soak: $(MODULE) ## everything on many threads for SECONDS, with values checked; captures beside drops, ROUNDS; BUILDS of graphs
	$(PY) tests_py/soak/soak.py --seconds $(SECONDS) --threads $(THREADS) --seed $(SEED) --driver-faults $(FAULTS)
	$(PY) tests_py/soak/drop_capture.py --rounds $(ROUNDS)
	$(PY) tests_py/soak/builds.py --builds $(BUILDS)

# PyTorch with Triton, JAX, CuPy, Numba and TVM FFI: 7 GB, so an environment of its own that is kept.
$(INTEROP_VENV)/packages: tests_py/interop/requirements.txt
	$(BASE_PYTHON) -m venv $(INTEROP_VENV)
	$(INTEROP_VENV)/bin/python -m pip install -q -r tests_py/interop/requirements.txt
	@touch $@

# The kernels of other compilers are for architectures up to sm_90, which only the simulated driver always has.
test-interop: $(MODULE) $(INTEROP_VENV)/packages ## tensor exchange with the other frameworks, and kernels of other compilers
	$(INTEROP_VENV)/bin/python -c 'import torch, jax, cupy, numba, numba_cuda, triton, tvm_ffi' # a test skips where one is missing
	PYTHONPATH=python $(INTEROP_VENV)/bin/python -m pytest $(PYTEST_FLAGS) --ignore tests_py/interop/kernels \
		tests_py/interop tests_py/api/test_contract.py tests_py/tensor
	PYTHONPATH=python CUDAGO_DRIVER=sim CUDAGO_SIM=cc=9.0 CUDAGO_REQUIRE_COMPILERS=1 CUDAGO_REQUIRE_GPU= \
		$(INTEROP_VENV)/bin/python -m pytest $(PYTEST_FLAGS) tests_py/interop/kernels tests_py/kernel/test_nvvm.py

# Tests of what talks to libcuda, for machines with a GPU and without Go.
GPU_PACKAGES := ./cuda ./cuda/internal/driver/nvidia ./graph
.PHONY: go-test-binaries
go-test-binaries: $(TOOLS) ## build the Go tests that make test-gpu runs, to be carried to a machine with a GPU
	@mkdir -p build/gotest
	. $(TOOLS) && for p in $(GPU_PACKAGES:./%=%); do \
		"$$GO" test -c -trimpath -ldflags="-s -w" -o build/gotest/$$(echo $$p | tr / +).test ./$$p || exit 1; done

test-gpu: $(MODULE) go-test-binaries ## everything that needs a GPU, with the installed package
	PYTHON=$(PY) scripts/gpu.sh

.PHONY: bench bench-sim
bench: $(MODULE) ## measure our calls beside the C floor and the peers, on NVIDIA's driver
	$(PY) benchmarks/bench.py --driver nvidia

bench-sim: $(TOOLS) ## million PTX instructions of threads a second on the simulated driver, kernel by kernel
	. $(TOOLS) && "$$GO" run ./internal/ptxvm/benchsim

# --- work on the code ------------------------------------------------------------

.PHONY: lint fmt gen gen-check docs clean
lint: $(VENV)/tools $(MODULE) ## gofmt, go vet, golangci-lint, C warnings, ruff, mypy, pyright, stubtest
	@. $(TOOLS) && PY=$(PY) scripts/lint.sh

fmt: $(VENV)/tools $(TOOLS) ## format Go, C and Python
	. $(TOOLS) && "$$GO" tool -modfile=tools.mod goimports -local github.com/cudago/cudago -w $$(git ls-files '*.go' | grep -v '/z[^/]*$$')
	git ls-files 'pyext/*.[ch]' 'dlpack/*.[ch]' | grep -v '/z[^/]*$$' | xargs $(VENV)/bin/clang-format -i
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix-only -q .

gen: $(VENV)/tools $(MODULE) ## rewrite the generated files that have changed
	. $(TOOLS) && "$$GO" run ./internal/gen && "$$GO" run ./internal/ptxvm/lane/gen
	. $(TOOLS) && $(PY) pyext/gen.py
	$(if $(wildcard pyext/gendocs.py),$(PY) pyext/gendocs.py)
	$(PY) benchmarks/results.py page
	CUDAGO_DRIVER=sim PYTHONPATH=tests_py:python $(PY) -m promises.table > build/order.rst && mv build/order.rst docs/reference/order.rst

gen-check: $(VENV)/tools $(MODULE) ## fail if the generated files are not what make gen makes
	@before=$$(cat $(sort $(GENERATED)) | cksum) && $(MAKE) --no-print-directory gen && \
	after=$$(cat $(sort $(GENERATED)) | cksum) && \
	{ [ "$$before" = "$$after" ] || { echo 'generated files were out of date; see git diff' >&2; exit 1; }; }

docs: $(VENV)/tools $(MODULE) ## build the documentation into docs/_build/html
	$(PY) -m sphinx -q -W --keep-going -b html docs docs/_build/html

clean: ## remove everything that was built or installed here
	rm -rf $(VENV) $(INTEROP_VENV) build dist docs/_build $(MODULE)
