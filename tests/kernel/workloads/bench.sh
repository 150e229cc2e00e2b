# SPDX-License-Identifier: GPL-2.0
# In the guest: freeing, timed by the modules mm_batch_bench and test_vmalloc. A row's command sets
# $value; <command>_units, with the same arguments, says behind it of how many units that is.

insmod /modules/mm_batch_bench.ko || fail 'the bench module does not load'

# What the free lists look like is a matter of chance, and some workloads feel it.
settle() {
	echo 0 >/sys/module/mm_batch_bench/parameters/pinned || fail "cannot unpin"
	echo 1 >/proc/sys/vm/compact_memory || fail "cannot compact"
	echo 1 >/sys/module/mm_batch_bench/parameters/pinned || fail "cannot pin"
}

# bench WORKLOAD LOOPS [TOGETHER]: sets $value to nanoseconds per page, in thousandths.
bench() {
	echo "$@" >/sys/module/mm_batch_bench/parameters/run || fail "$1 does not run"
	value=$(awk '{ printf "%.3f", $1 / $2 }' /sys/module/mm_batch_bench/parameters/run)
}

bench_units() { cut -d' ' -f2 /sys/module/mm_batch_bench/parameters/run; }

# vmalloc PAGES HUGE LOOPS: sets $value to nanoseconds per loop.
vmalloc() {
	# A grace period before, and a sleep after what the module times: 6 or 7 ticks.
	idle_allowed=8
	no_complaint
	dmesg -c >/dev/null
	# The module always refuses to stay.
	insmod /modules/test_vmalloc.ko run_test_mask=1 nr_threads=1 sequential_test_order=1 \
		nr_pages="$1" use_huge="$2" test_loop_count="$3" 2>/dev/null
	value=$(dmesg | awk -v loops="$3" '/Summary: fix_size_alloc_test passed: 1 / {
		for (i = 1; i < NF; i++)
			if ($i == "avg:") ns = $(i + 1) * 1000
	} END { if (ns) printf "%.3f", ns / loops }')
	[ -n "$value" ] || fail "test_vmalloc did not pass"
}

# A module that refuses to stay is loaded by both of the two system calls for that, one after the other.
vmalloc_units() { echo $(($(dmesg | grep -c 'Summary: ') * $3)); }
