#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The modes of anon_unmap from user space, in KTAP. Needs what the selftests anon_unmap,
# anon_unmap_race and anon_unmap_pins, which are the load, do, and those beside it.
#
#	anon_unmap_modes.sh [SECONDS]
#
# The load goes on for so long, each race ten times as long as without.

. "${0%/*}/modes.sh"
path=anon_unmap
lasts=$1
here=${0%/*}
# A twin in C, where the kernel was built with one.
all_modes="off rust"
! offered c || all_modes="off c rust"

# They look at every byte that they wrote, and at what is known of each page.
load() {
	seconds=${lasts:+10}
	for test in "anon_unmap" "anon_unmap_race ${seconds:-1} switched" "anon_unmap_pins ${seconds:-1}"; do
		# shellcheck disable=SC2086
		"$here"/$test >/tmp/anon_unmap.log 2>&1 && continue
		sed 's/^/# /' /tmp/anon_unmap.log
		return 1
	done
}

modes switching_under_load
