#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The modes of file_unmap from user space, in KTAP. Needs what the selftest file_unmap,
# which is the load, does, and that one beside it.

. "${0%/*}/modes.sh"
path=file_unmap
here=${0%/*}

# It looks at what it wrote, at permissions and at markers; the kernel at its counters as it ends.
selftest() { # LOG
	"$here/file_unmap" >"$1" 2>&1 && return
	sed 's/^/# /' "$1"
	return 1
}

# One on each CPU.
load() {
	selftest /tmp/file_unmap.1 &
	selftest /tmp/file_unmap.2
	code=$?
	wait $! && [ $code -eq 0 ]
}

modes switching_under_load
