# SPDX-License-Identifier: GPL-2.0
# In the guest (busybox sh): running a row in a mode and printing its result.
#
# A result is one line, RESULT <path> <workload> <mode> <metric> <value>, which the
# host collects. A run during which the CPU was idle is repeated: with icount the
# clock jumps over idle time. $idle_allowed is what a workload idles by itself,
# outside of what it times.

params=/sys/module/mm_batch/parameters

fail() {
	echo "mm_batch: job failed: $*"
	poweroff -f
}

set_mode() { # PATH MODE
	echo "$2" >$params/"$1" || fail "cannot set $1 to $2"
	[ "$(cat $params/"$1")" = "$2" ] || fail "$1 is not $2"
}

# Idle time of all CPUs in jiffies.
idle() { awk '/^cpu / { print $5 + $6 }' /proc/stat; }

# bench WORKLOAD LOOPS: sets $value to nanoseconds per page, in thousandths.
bench() {
	echo "$1 $2" >/sys/module/mm_batch_bench/parameters/run || fail "$1 does not run"
	value=$(awk '{ printf "%.3f", $1 / $2 }' /sys/module/mm_batch_bench/parameters/run)
}

# vmalloc PAGES HUGE LOOPS: sets $value to nanoseconds per loop.
vmalloc() {
	# A grace period before, and a sleep after what the module times: 6 or 7 ticks.
	idle_allowed=8
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

# What the free lists look like is a matter of chance, and some workloads feel it.
settle() {
	echo 0 >/sys/module/mm_batch_bench/parameters/pinned || fail "cannot unpin"
	echo 1 >/proc/sys/vm/compact_memory || fail "cannot compact"
	echo 1 >/sys/module/mm_batch_bench/parameters/pinned || fail "cannot pin"
}

# What is left of chance is averaged: a run is the mean of so many parts.
parts=4

# row PATH WORKLOAD MODE METRIC COMMAND...: one run and its result line. A first,
# uncounted part brings the per-CPU lists to where this mode leaves them.
row() {
	path=$1 workload=$2 mode=$3 metric=$4
	shift 4
	set_mode "$path" "$mode"
	"$@"
	values= tries=0
	while [ "$(echo $values | wc -w)" -lt $parts ]; do
		tries=$((tries + 1))
		[ $tries -le $((2 * parts)) ] || fail "$workload: too much idle time"
		settle
		before=$(idle)
		idle_allowed=0
		"$@"
		idled=$(($(idle) - before))
		if [ $idled -le $idle_allowed ]; then
			values="$values $value"
		else
			echo "REPEAT $path $workload $mode: idle for $idled ticks"
		fi
	done
	value=$(echo $values | awk '{ for (i = 1; i <= NF; i++) s += $i; printf "%.3f", s / NF }')
	echo "RESULT $path $workload $mode $metric $value"
}
