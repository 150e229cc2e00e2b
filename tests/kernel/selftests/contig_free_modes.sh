#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The modes of contig_free from user space, in KTAP. Needs root, mm_batch_bench and
# test_vmalloc in /modules.

param=/sys/module/mm_batch/parameters/contig_free
at_boot=$(sed -n 's/.*mm_batch\.contig_free=\([a-z]*\).*/\1/p' /proc/cmdline)
count=0

ktap() { # STATUS NAME
	count=$((count + 1))
	echo "$1 $count $2"
}

check() { # NAME COMMAND...
	name=$1
	shift
	if "$@"; then ktap ok "$name"; else ktap "not ok" "$name"; fi
}

# No process but the shell's: under emulation one costs more than the switch.
set_and_get() { echo "$1" >$param && read -r now <$param && [ "$now" = "$1" ]; }

bad_value_is_refused() {
	before=$(cat $param)
	for value in fast "" Rust 3; do
		! echo "$value" >$param 2>/dev/null || return 1
		[ "$(cat $param)" = "$before" ] || return 1
	done
}

# What was allocated must come back, whatever mode freed it. Pages on per-CPU lists count;
# what slabs keep (KASAN's quarantine) is not lost.
free_kib() {
	awk '/^ *pages free / || /^ *nr_slab_/ { pages += $NF } /^ *count: / { pages += $2 }
		END { print 4 * pages }' /proc/zoneinfo
}

switching_under_load() {
	rm -f /tmp/load_done /tmp/switched
	before=$(free_kib)
	(
		# Frees by free_contig_range() and by vfree(), on both CPUs, as long as it takes.
		rounds=0
		while [ $rounds -lt 6 ] || { [ ! -e /tmp/switched ] && [ $rounds -lt 60 ]; }; do
			rounds=$((rounds + 1))
			echo "order9 400" >/sys/module/mm_batch_bench/parameters/run
			echo "range3077 20" >/sys/module/mm_batch_bench/parameters/run
			insmod /modules/test_vmalloc.ko run_test_mask=9 nr_threads=2 \
				test_loop_count=300 nr_pages=64 use_huge=1 2>/dev/null
		done
		: >/tmp/load_done
	) &
	switches=0
	while [ ! -e /tmp/load_done ]; do
		for mode in off rust c rust; do
			set_and_get $mode || return 1
			switches=$((switches + 1))
		done
		[ $switches -lt 100 ] || : >/tmp/switched
	done
	wait
	echo "# $switches switches"
	[ $switches -ge 100 ] || return 1
	sleep 1
	lost=$((before - $(free_kib)))
	echo "# $lost KiB less free than before"
	# Caches of the load itself, and KASAN's shadow of what vmalloc used; one lost order-9 block in a
	# hundred would be 48 MiB.
	[ $lost -lt 12288 ]
}

no_splat() { ! dmesg | grep -qE 'BUG|WARNING|Bad page|page allocation failure'; }

[ -d /sys/module/mm_batch_bench ] || insmod /modules/mm_batch_bench.ko
echo "KTAP version 1"
echo "1..7"
check "the mode given at boot" [ "$(cat $param)" = "$at_boot" ]
check "mode off" set_and_get off
check "mode c" set_and_get c
check "mode rust" set_and_get rust
check "a bad value is refused and changes nothing" bad_value_is_refused
check "switching under load" switching_under_load
check "no splat" no_splat
