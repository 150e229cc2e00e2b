# SPDX-License-Identifier: GPL-2.0
# In the guest (busybox sh): running a row in a mode and printing its result. What a row runs is of
# workloads/*.sh.
#
# A result is one line, RESULT <path> <workload> <mode> <metric> <value>, which the
# host collects; NOTE <path> <workload> <text> is what it prints beside. A run during which the CPU was
# idle is repeated: with icount the clock jumps over idle time. $idle_allowed is what a workload idles by itself,
# outside of what it times.

params=/sys/module/mm_batch/parameters

# Which row it was, if one has begun.
fail() {
	echo "mm_batch: job failed: ${workload:+$workload, mode $mode: }$*"
	poweroff -f
}

# What the kernel complained of fails a job, also where the console is too quiet to show it.
no_complaint() {
	complaint=$(dmesg | grep -m1 -E -f /splats)
	[ -z "$complaint" ] || fail "the kernel complained: $complaint"
}

set_mode() { # PATH MODE
	echo "$2" >$params/"$1" || fail "cannot set $1 to $2"
	[ "$(cat $params/"$1")" = "$2" ] || fail "$1 is not $2"
}

# As the kernel was booted: the rows of one path leave its mode to those of the next one.
remember_modes() { modes=$(cd $params && grep . *); }

default_modes() {
	for each in $modes; do
		set_mode "${each%%:*}" "${each#*:}"
	done
}

# swap_on MIB: zram as swap.
swap_on() {
	echo "$1"M >/sys/block/zram0/disksize && mkswap /dev/zram0 >/dev/null && swapon /dev/zram0 || fail 'no swap'
}

# A RAM disk as swap: all of its own pages at once, so that no run is the first to need them.
ram_swap_on() {
	dd if=/dev/zero of=/dev/ram0 bs=1M >/dev/null 2>&1
	mkswap /dev/ram0 >/dev/null && swapon /dev/ram0 || fail 'no swap on a RAM disk'
}

# What memory.reclaim needs.
memory_cgroups() {
	mount -t cgroup2 cgroup /sys/fs/cgroup || fail 'no cgroup2'
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control || fail 'no memory controller'
}

# Idle time of all CPUs in jiffies.
idle() { awk '/^cpu / { print $5 + $6 }' /proc/stat; }

# results VALUE...: a line for each metric of the run.
results() {
	for value; do
		echo "RESULT $path $workload $mode ${metrics%%,*} $value"
		metrics=${metrics#*,}
	done
}

# note TEXT: of the row that was last.
note() { echo "NOTE $path $workload $*"; }

# row PATH WORKLOAD MODE METRIC[,METRIC...] COMMAND...: one run, and a result line for each
# metric. What is left of chance is averaged: a run is the mean of $parts parts. One before
# them, which does not count, brings the per-CPU lists to where this mode leaves them.
row() {
	path=$1 workload=$2 mode=$3 metrics=$4
	shift 4
	set_mode "$path" "$mode"
	# Also before the first: what the last row left would be taken for this one's.
	settle
	"$@"
	values= counted=0 tries=0
	while [ $counted -lt $parts ]; do
		tries=$((tries + 1))
		[ $tries -le $((2 * parts)) ] || fail "too much idle time"
		settle
		before=$(idle)
		idle_allowed=0
		"$@"
		idled=$(($(idle) - before))
		if [ $idled -le $idle_allowed ]; then
			values="$values $value"
			counted=$((counted + 1))
		else
			echo "REPEAT $path $workload $mode: idle for $idled ticks"
		fi
	done
	results $(echo $values | awk -v parts=$parts '{
		for (i = 1; i <= NF; i++) sum[i % (NF / parts)] += $i
		for (i = 1; i <= NF / parts; i++) printf "%.3f\n", sum[i % (NF / parts)] / parts
	}')
}

# count PATH WORKLOAD MODE METRIC[,METRIC...] COMMAND...: one run of a row that counts events. What the CPUs did
# besides is no event, and no two runs are the same: nothing is repeated.
count() {
	path=$1 workload=$2 mode=$3 metrics=$4
	shift 4
	set_mode "$path" "$mode"
	settle
	"$@"
	results $value
}
