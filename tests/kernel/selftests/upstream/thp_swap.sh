#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The kernel's tools/mm/thp_swap_allocator_test, set up as its head asks, but for more swap, with
# its expectation as KTAP: of 64 KiB folios none is split because swap has no room for it.

enabled=/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled
before=$(sed 's/.*\[\(.*\)\].*/\1/' $enabled)
echo always >$enabled
echo "KTAP version 1"
echo "1..1"
../tools/thp_swap_allocator_test -s >/tmp/thp_swap.log 2>&1
awk '/^Iteration/ { n++; out += $5; back += $9 }
	END {
		print "# " n " iterations, " out " folios out, " back " split for want of room"
		print (n == 100 && out && !back ? "ok" : "not ok") " 1 64 KiB folios swapped out whole"
	}' /tmp/thp_swap.log
echo "$before" >$enabled
