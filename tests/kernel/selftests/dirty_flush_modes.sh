#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The modes of dirty_flush from user space, in KTAP. Needs what the selftests dirty_flush and
# dirty_flush_write, which are the load, do, and those beside it.
#
#	dirty_flush_modes.sh [SECONDS]
#
# The load goes on for so long, each kind of it ten times as long as without.

. "${0%/*}/modes.sh"
path=${path:-dirty_flush}
lasts=$1
# One is long, and has 22 kinds of load.
enough=1
here=${0%/*}
# A twin in C, where the kernel was built with one.
all_modes="off rust"
! offered c || all_modes="off c rust"

# They look at every byte that they wrote, before and after it was in swap.
load() {
	seconds=${lasts:+10}
	for test in dirty_flush dirty_flush_write; do
		"$here/$test" "${seconds:-1}" >/tmp/dirty_flush.log 2>&1 && continue
		sed 's/^/# /' /tmp/dirty_flush.log
		return 1
	done
}

modes switching_under_load
