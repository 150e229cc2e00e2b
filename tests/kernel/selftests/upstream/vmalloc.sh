#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vmalloc.sh PARAMETERS...: upstream's test_vmalloc.sh, which says nothing of what the module
# found, with the module's own summary as KTAP.

dmesg -C
(cd ../mm && ./test_vmalloc.sh "$@") || exit
echo "KTAP version 1"
# A line per worker and test.
dmesg | sed -n 's/.*Summary: \([a-z_]*\) passed: \([0-9]*\) failed: \([0-9]*\) .*/\1 \2 \3/p' |
	awk '{ worst[$1] += $3; seen[$1] += $2; if (!order[$1]) { order[$1] = ++n; name[n] = $1 } }
	END {
		print "1.." n
		for (i = 1; i <= n; i++)
			print (worst[name[i]] || !seen[name[i]] ? "not ok " : "ok ") i " " name[i]
	}'
