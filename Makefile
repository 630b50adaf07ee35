# What people type. `make` alone says what there is.

CARGO ?= cargo
PREFIX ?= $(HOME)/.local
BIN ?= $(PREFIX)/bin
# Options for the test programs, after their `--`; for example TESTS='--test-threads=1'.
TESTS ?=

HOST := $(shell rustc -vV | sed -n 's/^host: //p')
# What the tests run has named places at which it can be killed, and faults that are made when asked for. No release
# has them.
TESTED := --workspace --features minderd/kill-points,minderd/seeded-faults

# A release is linked statically where the target allows: its programs start faster. With the target named, build
# scripts and macros of the compile are not concerned. Random bytes come from the system call then: a program that is linked
# statically does not find the C library's function for it, and would open a device.
ifneq (,$(findstring -linux-,$(HOST)))
LINK := -C target-feature=+crt-static -C relocation-model=static --cfg getrandom_backend="linux_getrandom"
endif
release: export RUSTFLAGS := $(strip $(RUSTFLAGS) $(LINK))
bench: export RUSTFLAGS := $(strip $(RUSTFLAGS) $(LINK))
RELEASE := target/$(HOST)/release

# How much `make crash` does. `.ci/run` does less of it.
CRASH_ROUNDS ?= 1000
CRASH_POINTS ?= all

.PHONY: help demo test crash power bench fuzz lint docs release install

help:
	@echo 'make demo      builds minder (some minutes, once) and shows it at work in a throw-away store'
	@echo 'make test      installs what the tests need (1.4 GB of npm packages; as root Debian packages), runs them all'
	@echo 'make crash     kills the daemon a thousand times and wherever else it hurts, and looks for what is lost'
	@echo 'make power     takes the power away from daemons under load, on real disks and on rebuilt ones'
	@echo 'make install   puts minder and minderd into $(BIN)'
	@echo 'make lint      format, clippy and documentation, with warnings as errors'
	@echo 'make docs      writes the generated documents anew'
	@echo 'make bench     measures, and prints one table'
	@echo 'make fuzz      throws bytes at every parser, each for SECONDS_EACH=30'

demo:
	$(CARGO) build --locked -p minder -p minderd
	target/debug/minder tour

# The tests of the `tests` crate run the programs that the first of these commands builds.
test:
	tests/setup.sh
	rm -rf target/tmp/harnesses
	$(CARGO) build --locked $(TESTED)
	$(CARGO) test --locked --no-fail-fast $(TESTED) -- $(TESTS)

# First what must hold, then whether what breaks it would be found.
crash:
	tests/setup.sh
	$(CARGO) build --locked $(TESTED)
	target/debug/crash --rounds $(CRASH_ROUNDS) --points $(CRASH_POINTS)
	target/debug/crash --faults

# What is left after a loss of power: on ext4 and XFS images, which needs root and loop devices, and rebuilt from a
# record of a daemon's calls. With POWER='--cycles 24 --states 200 --faults' less of it.
POWER ?= --cycles 200 --states 1000 --faults
power:
	tests/setup.sh
	$(CARGO) build --locked $(TESTED)
	target/debug/power $(POWER)

lint: export RUSTDOCFLAGS := -D warnings
lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked $(TESTED) --all-targets -- -D warnings
	$(CARGO) doc --locked $(TESTED) --no-deps --quiet

# Whatever is made from the code and kept in the repository; a test compares each with the code.
docs: export UPDATE_EXPECT := 1
docs:
	$(CARGO) build --locked $(TESTED)
	$(CARGO) test --locked $(TESTED) --test it -- generated reference

release:
	$(CARGO) build --locked --release --target $(HOST) -p minder -p minderd

install: release
	install -d '$(DESTDIR)$(BIN)'
	install -m 755 $(RELEASE)/minder $(RELEASE)/minderd '$(DESTDIR)$(BIN)'
	@'$(DESTDIR)$(BIN)/minder' --version && '$(DESTDIR)$(BIN)/minderd' --version
	@case ":$$PATH:" in *':$(BIN):'*) ;; *) echo 'note: $(BIN) is not in your PATH' ;; esac

bench: release
	$(CARGO) bench --locked --target $(HOST) -p minder-tests --bench table

# Any toolchain will do; a C++ compiler is needed. FUZZ names targets; without it all of them run.
fuzz:
	fuzz/run $(FUZZ)
