# SPDX-License-Identifier: GPL-2.0
# Shared by run, plant and survivors: where a job works, and how it builds and tests there.

. "$(dirname "${BASH_SOURCE[0]}")/../tools/fetch/lib.sh"
work=$cache/mutants
folder=$top/tests/mutants

# Optimised, or the property tests take ten times as long, which hundreds of runs do not make up for.
# A failure is not made smaller. (Nor is it kept, as no property does that: the next is found without it.)
export CARGO_INCREMENTAL=1 CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_DEV_DEBUG=0 \
	PROPTEST_MAX_SHRINK_ITERS=0 NEXTEST_PROFILE=mutants

# What tests the algorithm modules. The compile-fail cases compile these by themselves, slowly.
judges=(--lib --test=properties)

# at JOB: from here on in that job's copy of the tree, with its builds.
at() {
	cd "$work/$1/tree"
	export CARGO_TARGET_DIR=$work/$1/target
}

patch_of() { find "$folder" -name "$1.patch"; }
caught_by() { sed -n '1s/^Caught-by: //p' "$(patch_of "$1")"; }

# -p would choose other features for the dependencies, and build them again.
in_test() { tests/tools/fetch/with cargo cargo nextest run --locked --color never "$@"; }
with_cfg() { # with_cfg NAME ARGUMENT...
	local cfg=$1
	shift
	tests/tools/fetch/with cargo env RUSTFLAGS="--cfg $cfg" CARGO_TARGET_DIR="$CARGO_TARGET_DIR/$cfg" \
		cargo nextest run --locked --color never "$@"
}
in_loom() { with_cfg loom "$@"; }
in_shuttle() { with_cfg shuttle "$@"; }

named() { echo "test(/(^|::)($1)\$/)"; }

minutes() { if [ "$1" -lt 90 ]; then echo "$1 s"; else echo "$(($1 / 60)) min"; fi; }
