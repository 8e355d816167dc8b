# The front door: thin, over CMake presets and scripts. `make` alone lists what there is.
.DEFAULT_GOAL := help
.PHONY: help demo test test-asan format lint install clean

BUILD := cmake --build --preset
PREFIX ?= /usr/local

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

demo:  ## train a small CNN on Fashion-MNIST with SGDM and SGD-PH, print both accuracies
	@scripts/install-deps.sh demo
	@cmake --preset release -Wno-dev >/dev/null
	@$(BUILD) release --target fashion_mnist
	@build/release/examples/fashion_mnist

test:  ## build everything and run all tests
	@scripts/install-deps.sh test
	@cmake --preset dev -Wno-dev >/dev/null
	@$(BUILD) dev
	@ctest --preset dev

test-asan:  ## the core tests under address and undefined-behaviour sanitizers
	@scripts/install-deps.sh test
	@cmake --preset asan -Wno-dev >/dev/null
	@$(BUILD) asan
	@ctest --preset asan

format:  ## format the sources in place
	@scripts/install-deps.sh lint
	@git ls-files '*.h' '*.cpp' | xargs clang-format -i

lint:  ## check the format, and run clang-tidy
	@scripts/install-deps.sh lint test
	@git ls-files '*.h' '*.cpp' | xargs clang-format --dry-run --Werror
	@cmake --preset release -Wno-dev >/dev/null
	@git ls-files 'src/*.cpp' | xargs -P 2 -n 1 clang-tidy --quiet --extra-arg=-std=c++17 -p build/release

install:  ## install the library to PREFIX (default /usr/local)
	@scripts/install-deps.sh build
	@cmake --preset release -Wno-dev >/dev/null
	@$(BUILD) release --target sgdph
	@cmake --install build/release --prefix $(PREFIX)

clean:  ## remove all build folders
	rm -rf build
