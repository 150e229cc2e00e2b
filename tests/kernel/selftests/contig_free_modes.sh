#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The modes of contig_free from user space, in KTAP. Needs root, mm_batch_bench and
# test_vmalloc in /modules.

. "${0%/*}/modes.sh"
path=contig_free

# Frees by free_contig_range() and by vfree(), on both CPUs.
load() {
	echo "order9 400" >/sys/module/mm_batch_bench/parameters/run
	echo "range3077 20" >/sys/module/mm_batch_bench/parameters/run
	# It always refuses to stay.
	! insmod /modules/test_vmalloc.ko run_test_mask=9 nr_threads=2 \
		test_loop_count=300 nr_pages=64 use_huge=1 2>/dev/null
}

# What was allocated must come back, whatever mode freed it. Pages on per-CPU lists count;
# what slabs keep (KASAN's quarantine) is not lost, nor is KASAN's shadow of what vmalloc used,
# with its page tables: the kernel that has KASAN says how much these are.
free_kib() {
	cat /proc/zoneinfo /proc/allocinfo 2>/dev/null | awk '
		/^ *pages free / || /^ *nr_slab_/ { kib += 4 * $NF } /^ *count: / { kib += 4 * $2 }
		/ mm\/kasan\/shadow\.c:| func:__pte_alloc_kernel/ { kib += $1 / 1024 }
		END { printf "%d\n", kib }'
}

nothing_is_lost() {
	before=$(free_kib)
	switching_under_load || return 1
	sleep 1
	lost=$((before - $(free_kib)))
	echo "# $lost KiB less free than before"
	# Caches of the load itself; one lost order-9 block in a hundred would be 48 MiB.
	[ $lost -lt 4096 ]
}

[ -d /sys/module/mm_batch_bench ] || insmod /modules/mm_batch_bench.ko
modes nothing_is_lost
