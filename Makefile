# SPDX-License-Identifier: GPL-2.0
# The verbs. Each says what it does and about how long it takes.

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
verbs := test loom shuttle doctor kernel kunit uml kselftest runner shell evaluate time meter profile before mutants \
	mutants-kernel series deb import export patches-check versions same-source report lint full soak stale prove-fresh prove-deb clean
.PHONY: help given $(verbs)

# What may be given reaches the tools by the environment. In a recipe it would be a part of the shell's text.
export $(shell sed -n 's/^\([A-Z_]*\)\t.*/\1/p' tests/tools/variables)

with := tests/tools/fetch/with
mmb := $(with) kernel python3 -m mmb

$(verbs): given

given:
	@tests/tools/given

help: ## this list
	@echo "mm_batch: batching for Linux memory reclaim, in Rust"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile
	@echo "Variables, as in make kunit ARCH=arm64:"
	@awk -F '	' '/^[A-Z]/ { printf "  %-16s %s\n", $$1"=", $$5 }' tests/tools/variables

test: ## unit, property, differential, compile-fail and doc tests, loom models, shuttle (2 min; no root, no kernel)
	@tests/tools/test all

loom: ## the loom models at their full bound; T=name runs one, REPLAY=file one interleaving of it (40 s)
	@tests/tools/test loom "$$T" "$$REPLAY"

shuttle: ## many folios and threads, at random; T=name and REPLAY=file as for loom (25 s)
	@tests/tools/test shuttle "$$T" "$$REPLAY"

mutants: ## planted bugs, each caught by its test; T=<name> plants one, T=survivors is cargo-mutants alone (1 h)
	@tests/mutants/run "$$T"

mutants-kernel: ## planted bugs, each caught by its KUnit case or selftest; T=<name> plants one (30 min)
	@$(mmb) mutants-kernel

doctor: ## what is there, what is missing, and the command that mends it (1 s)
	@tests/tools/fetch/doctor

kernel: ## the patched kernel, built (first 12 min, then 10 s)
	@$(mmb) kernel

kunit: ## KUnit in the patched kernel, at boot and after init, and our selftests (4 min beyond make kernel)
	@$(mmb) kunit

uml: ## KUnit in User Mode Linux, the kernel as a process: no QEMU, no root (first 4 min, then 5 s)
	@$(mmb) uml

kselftest: ## our selftests and the kernel's in a Debian guest, in every mode; T=<test>|ours/* MODE=<mode> QUICK=1 (40 min); MINUTES=20 lets each race last
	@$(mmb) kselftest

runner: ## tests of the runner itself: panic, hang, bad KTAP, bad input (5 min beyond make kernel and make uml)
	@$(mmb) uml >/dev/null
	@METER=1 $(mmb) kernel >/dev/null
	@METER=1 $(with) workshop $(with) kernel $(with) report python3 -m unittest discover -v -s tests/tools -p 'test_*.py'

shell: ## boots the patched kernel to bash in a Debian guest (20 s beyond make kernel; first 1 min)
	@$(mmb) shell

evaluate: ## the main job: build, boot, every row in every mode, a table per path (first 45 min, then 30)
	@METER=1 $(mmb) evaluate

time: ## the rows of all paths in time, in User Mode Linux: no QEMU, no root (3 min, first 10; SCALE=full 16)
	@$(with) kernel $(with) report python3 -m mmb time

meter: ## instructions, runs and flushes of unmapping in reclaim, by the meter (3 min beyond make kernel)
	@METER=1 $(mmb) meter

profile: ## guest instructions per kernel function, ROW=<one row>; MODE=<one mode> (2 min beyond make kernel)
	@METER=1 $(mmb) profile

before: ## what folio_batch costs where it is off, and patches for plain C gain; ROW= SCALE=full (first 40 min, then 12)
	@$(mmb) before

report: ## the documents that have figures, and their plots, of report/ and docs/templates/ (5 s; first 1 min, 40 MB)
	@$(with) kernel $(with) report python3 -m mmb report

lint: ## rustfmt, clippy, clippy as the kernel runs it, checkpatch, whether planted bugs apply (2 min)
	@tests/tools/lint

series: ## the complete series for git am, Rust included, in out/series/; PART=fixes a part; SOB='Name <mail>' signs it off (2 s)
	@$(mmb) series

deb: ## the patched kernel and mm-batch-measure as Debian packages, in out/deb/, by KCONFIG=; LOCALMODCONFIG=1 or LSMOD= (2 h)
	@$(with) deb $(mmb) deb

import: ## the series as branches of out/series-git, to be changed by git: see docs/series.md (10 s)
	@$(mmb) import

export: ## writes patches/ and our files as those branches have them (20 s)
	@$(mmb) export

patches-check: ## what make series writes: applies, builds, boots patch by patch (15 min; QUICK=1, for CI: 5, FULL=1 60)
	@$(mmb) patches-check

versions: ## writes patches/versions.md: to which 7.3.y and newer the series applies (4 min, 1.3 GB the first time)
	@$(mmb) versions

same-source: ## the files that the kernel and cargo compiled are the same, by SHA-256 (5 s beyond make kernel)
	@tests/tools/same-source

full: ## everything that is too long for CI, what is not fresh of it; STEP=name for one (two lanes; 10 h if nothing is fresh)
	@$(with) workshop $(mmb) full

soak: ## what races with reclaim, for an hour each, in the debug kernel (2 h beyond make kernel DEBUG=1)
	@$(with) workshop $(mmb) soak

stale: ## which steps of make full are fresh, failed, or stale (1 s)
	@$(mmb) stale

prove-fresh: ## the README's two commands in a bare Debian 12; needs root (100 min; SCALE=full, for report/: 120)
	@tests/tools/prove-fresh

prove-deb: ## what make deb makes, in a Debian 12 with UEFI, GRUB and systemd under QEMU: installed, booted, measured, purged; needs root (25 min, first 3 h)
	@tests/tools/prove-deb

clean: ## removes builds and trees; downloads and tools stay
	@tests/tools/clean
