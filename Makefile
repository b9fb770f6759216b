# make demo   builds Tenon, then trains on real data on two devices: the CPU and a vendor's plugin
# make test   builds Tenon, then passes its tests
# make check  builds Tenon, then passes the tests that the changed files can break
# Both install what is missing first (Debian 12, Ubuntu 22.04 and 24.04).
.PHONY: demo test check build wheel bench mutation asan tsan bootstrap clean help

BUILD  := build/release
PYTHON := .venv/bin/python
RUN    := PYTHONPATH=$(BUILD)/python $(PYTHON)

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

bootstrap:
	@scripts/bootstrap.sh

build: bootstrap
	@scripts/build.sh release

demo: build
	@scripts/demo.sh $(BUILD)

test: build
	@scripts/test.sh $(BUILD)

check: bootstrap
	@scripts/check.sh

wheel: bootstrap
	$(PYTHON) -m pip wheel --no-deps --no-build-isolation -w dist .

bench: build
	benchmarks/run

# Nightly: counts how many of 200 small wrong changes the tests notice (tests/mutation).
mutation: bootstrap
	$(PYTHON) tests/mutation/run --jobs $(shell nproc)

asan tsan: bootstrap
	@scripts/sanitize.sh $@

clean:
	rm -rf build dist
