# The front door: thin, over CMake presets and scripts. `make` alone lists what there is.
.DEFAULT_GOAL := help
.PHONY: help demo test test-torch test-slow test-long test-python test-all test-page test-asan fuzz bench bench-python results docs format lint install clean

BUILD := cmake --build --preset
# TORCH=wheel builds with PyTorch's wheel instead of Debian's LibTorch, in folders of its own.
TORCH ?= debian
KIND := $(if $(filter wheel,$(TORCH)),wheel-)
export TORCH
PREFIX ?= /usr/local
RUNS ?= 100000
# Format and findings are those of Debian 12's clang; each version has others.
CLANG ?= 14
COMMA := ,
# Every unit of a preset, with these checks beside those of .clang-tidy.
TIDY = sed -n 's/^  "file": "\(.*\)",*$$/\1/p' build/$(1)/compile_commands.json \
  | xargs -P 2 -n 1 clang-tidy --quiet --extra-arg=-std=c++17 --checks=$(2) -p build/$(1)

CHECK_CLANG = clang-format --version | grep -q 'version $(CLANG)\.' || { printf '%s\n' \
  "make $@: the reference is clang $(CLANG), this is $$(clang-format --version); CLANG=NUMBER takes another, which finds other things" >&2; exit 2; }

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

demo:  ## compare SGD-PH with its rivals on Fashion-MNIST, in minutes
	@scripts/install-deps.sh demo
	@cmake --preset $(KIND)release -Wno-dev >/dev/null
	@$(BUILD) $(KIND)release --target sgdph_cli
	@build/$(KIND)release/cli/sgdph compare --recipe demo --jobs 2 --output-dir runs/$(KIND)demo
	@printf 'The same with curves, to open in a browser: '
	@build/$(KIND)release/cli/sgdph report runs/$(KIND)demo --title 'SGD-PH and its rivals on Fashion-MNIST'

test:  ## build everything and run the tests, but for the slow ones
	@scripts/install-deps.sh test
	@cmake --preset $(KIND)dev -Wno-dev >/dev/null
	@$(BUILD) $(KIND)dev
	@ctest --preset $(KIND)dev
	@$(MAKE) --no-print-directory test-python

test-python:  ## the Python package, with the torch of PYTHON if it has 2.6 or newer, else with PyTorch's wheel in build/wheel/venv
	@scripts/install-deps.sh test
	@scripts/test-python.sh || [ $$? -eq 77 ]

test-torch:  ## of the tests those that use LibTorch, the command from end to end among them: TORCH=wheel tries today's
	@scripts/install-deps.sh test
	@cmake --preset $(KIND)dev -Wno-dev >/dev/null
	@$(BUILD) $(KIND)dev --target sgdph_torch_tests
	@ctest --preset $(KIND)torch

test-slow:  ## the slow tests: the command's many ways in full, long runs, large networks, more ways to install
	@scripts/install-deps.sh test
	@cmake --preset $(KIND)dev -Wno-dev >/dev/null
	@$(BUILD) $(KIND)dev
	@ctest --preset $(KIND)slow

test-long:  ## kills, failing system calls and lost ranks at random, by the hundred and each in turn: an hour and more
	@scripts/install-deps.sh test
	@cmake --preset $(KIND)dev -Wno-dev >/dev/null
	@$(BUILD) $(KIND)dev
	@ctest --preset $(KIND)long

test-all: test test-slow test-long  ## all tests

test-page:  ## the page of sgdph report in headless Chromium; SGDPH_SCREENSHOTS=DIR keeps pictures
	@scripts/install-deps.sh test page
	@cmake --preset $(KIND)dev -Wno-dev >/dev/null
	@$(BUILD) $(KIND)dev --target sgdph_cli
	@SGDPH=build/$(KIND)dev/cli/sgdph PYTHONDONTWRITEBYTECODE=1 python3 tests/browser/report_test.py

test-asan:  ## the tests of library and lab under address and undefined-behaviour sanitizers
	@scripts/install-deps.sh test
	@cmake --preset $(KIND)asan -Wno-dev >/dev/null
	@$(BUILD) $(KIND)asan
	@ctest --preset $(KIND)asan

fuzz:  ## feed RUNS random inputs (default 100000) to each reader of files, under the sanitizers
	@scripts/install-deps.sh fuzz
	@tests/fuzz/run.sh $(RUNS) build/fuzz

bench:  ## speed of data pipelines and kernels, of a step against LibTorch and Python, the cost of every optimizer, and runs side by side
	@scripts/install-deps.sh bench
	@cmake --preset $(KIND)release -DSGDPH_BUILD_BENCHMARKS=ON -Wno-dev >/dev/null
	@$(BUILD) $(KIND)release --target sgdph_loader_bench sgdph_train_step_bench sgdph_kernels_bench \
	  sgdph_optimizer_step_bench sgdph_ranks_bench sgdph_cli
	@build/$(KIND)release/bench/sgdph_loader_bench
	@build/$(KIND)release/bench/sgdph_train_step_bench /usr/bin/python3 bench/train_step.py
	@build/$(KIND)release/bench/sgdph_kernels_bench
	@build/$(KIND)release/bench/sgdph_optimizer_step_bench
	@bench/ranks.sh build/$(KIND)release/bench/sgdph_ranks_bench
	@build/$(KIND)release/cli/sgdph cost
	@/usr/bin/python3 bench/side_by_side.py build/$(KIND)release/cli/sgdph

bench-python:  ## a step of SGD-PH in Python against torch.optim.SGD, on a small ResNet of plain torch.nn layers
	@scripts/install-deps.sh test
	@scripts/test-python.sh --run bench/train_step_python.py

results:  ## the long form of docs/results.md, page and figures, to build/results from the records in experiments
	@scripts/install-deps.sh lab
	@cmake --preset $(KIND)release -Wno-dev >/dev/null
	@$(BUILD) $(KIND)release --target sgdph_cli
	@rm -rf build/results
	@scripts/results.sh build/$(KIND)release/cli/sgdph build/results

docs:  ## write the tables of options in docs/ anew from the catalogue of optimizers
	@scripts/install-deps.sh test
	@cmake --preset $(KIND)dev -Wno-dev >/dev/null
	@$(BUILD) $(KIND)dev --target sgdph_core_tests
	@SGDPH_WRITE_DOCS=1 ctest --preset $(KIND)dev -R '^core.docs$$'

format:  ## format the sources in place
	@scripts/install-deps.sh lint
	@$(CHECK_CLANG)
	@git ls-files '*.h' '*.cpp' | xargs clang-format -i

lint:  ## check the format, run clang-tidy on the joined sources, and read each source by itself
	@scripts/install-deps.sh lint test
	@$(CHECK_CLANG)
	@git ls-files '*.h' '*.cpp' | xargs clang-format --dry-run --Werror
	@cmake --preset release -Wno-dev >/dev/null
	@$(call TIDY,release,-bugprone-suspicious-include)
	@cmake --preset apart -Wno-dev >/dev/null
	@$(call TIDY,apart,'-*$(COMMA)bugprone-suspicious-include')

install:  ## install library and command to PREFIX (default /usr/local)
	@scripts/install-deps.sh lab
	@cmake --preset $(KIND)release -Wno-dev >/dev/null
	@$(BUILD) $(KIND)release
	@cmake --install build/$(KIND)release --prefix $(PREFIX)

clean:  ## remove all build folders
	rm -rf build
