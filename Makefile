# make demo   builds what it runs, then trains on real data on two devices: the CPU and a vendor's plugin
# make test   builds Tenon, then passes its tests
# make test-gpu  builds Tenon, then tests the CUDA, ROCm and Ascend plugins on simulated vendor libraries
# make check  builds Tenon, then passes the tests that the changed files can break
# make lint   checks the format and the types of every file; make format formats them
# make docs   builds the site into build/site
# make wheel  builds dist/tenon_dl-*.whl for every Python that is found, and vendors' plugins, as PyPI takes them
# make nightly  runs what takes hours, or the stages that STAGES names; scripts/nightly.sh lists them
# All install what is missing first (Debian 12, Ubuntu 22.04 and 24.04).
.PHONY: demo test test-gpu check lint format docs nightly build wheel bench mutation asan tsan bootstrap clean help

BUILD  := build/release
PYTHON := .venv/bin/python
RUN    := PYTHONPATH=$(BUILD)/python $(PYTHON)

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

bootstrap:
	@scripts/bootstrap.sh

build: bootstrap
	@scripts/build.sh release

demo: bootstrap
	@scripts/build.sh release --demo
	@scripts/demo.sh $(BUILD)

test: build
	@scripts/test.sh $(BUILD)

test-gpu: build
	@scripts/test_gpu.sh $(BUILD)

check: bootstrap
	@scripts/check.sh

lint: bootstrap
	@scripts/lint.sh

format: bootstrap
	@scripts/lint.sh --fix

docs: build
	@scripts/docs.sh $(BUILD)

nightly:
	@scripts/nightly.sh $(STAGES)

wheel: bootstrap
	@scripts/wheel.sh

bench: build
	benchmarks/run

# Counts how many of 200 small wrong changes the tests notice (tests/mutation).
mutation: build
	$(PYTHON) tests/mutation/run --jobs $(shell nproc)
	$(RUN) tests/mutation/run_python --jobs $(shell nproc)

asan tsan: bootstrap
	@scripts/sanitize.sh $@

clean:
	rm -rf build dist
