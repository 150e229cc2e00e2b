# SPDX-License-Identifier: GPL-2.0
# In the guest: reclaim of $mib MiB that /reclaim maps, timed by the meter. A row's command sets $value;
# <command>_units says behind it of how many pages that is, and what of it is the meter's own.

meter=/sys/kernel/debug/mm_batch_meter
mkdir /scratch && mount -t ext4 /dev/vda /scratch || fail 'no scratch disk'
memory_cgroups
mkdir /sys/fs/cgroup/row || fail 'no cgroup'
swap_on $((mib > 512 ? mib : 512))
echo 1 >$meter/enable || fail 'no meter'

settle() { echo 3 >/proc/sys/vm/drop_caches; }

# reclaim KIND FOLIO_KIB MIB [2cpu|<TASKS>tasks]: sets $value to nanoseconds per page in try_to_unmap(), and in all.
reclaim() {
	# What it does before and after may wait for the disk; it says itself whether the rest was idle.
	idle_allowed=1000000
	out=$(/reclaim "$1" "$2" "$3" 80 /scratch/file /sys/fs/cgroup/row $4 2>&1) || fail "$out"
	set -- $out
	value="$2 $3"
	[ "$4" = 0 ] || idle_allowed=-1
}

# all_paths ...: the same, with every path in the row's mode.
all_paths() {
	for each in $params/*; do
		set_mode "${each##*/}" "$mode"
	done
	reclaim "$@"
	default_modes
	set_mode "$path" "$mode"
}

reclaim_units() { awk '{ is[$1] = $2 } END { print is["pages"], int(is["runs"] * is["cost_run"]) }' $meter/stats; }
all_paths_units() { reclaim_units; }
