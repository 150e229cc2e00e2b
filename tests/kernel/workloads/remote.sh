# SPDX-License-Identifier: GPL-2.0
# Reclaim of another task's memory, timed as a whole by /remote. Swap is a RAM disk, files are on the disk that the
# command line has as ubd0, or QEMU as its first. A row's command sets $value.

ram_swap_on
for disk in /dev/ubda /dev/vda; do
	[ ! -b $disk ] || scratch=$disk
done
mkdir /scratch && mount -t ext4 $scratch /scratch || fail 'no scratch disk'
memory_cgroups
mkdir /sys/fs/cgroup/row || fail 'no cgroup'

settle() { echo 3 >/proc/sys/vm/drop_caches; }

# remote KIND FOLIO_KIB MIB CONTENT pageout|reclaim[-ORDER]: sets $value to nanoseconds per page. With $check it reads
# back what was written.
remote() {
	# What it does before and after may wait; it says itself whether the rest was idle.
	idle_allowed=1000000
	out=$(/remote "$@" /scratch/file /sys/fs/cgroup/row $check 2>&1) || fail "$out"
	value=$(echo "$out" | awk '{ for (i = 1; i < NF; i += 2) is[$i] = $(i + 1); printf "%.3f", is["ns"] / is["pages"] }')
	[ "${out#*idle 0}" != "$out" ] || idle_allowed=-1
}

# gen ...: the same with LRU_GEN.
gen() {
	echo y >/sys/kernel/mm/lru_gen/enabled || fail 'LRU_GEN cannot be switched on'
	remote "$@"
	echo n >/sys/kernel/mm/lru_gen/enabled || fail 'LRU_GEN cannot be switched off'
}

# steps ONE_BY_ONE ...: remote, where batches do these steps, by the meter's sum, to one folio after the other.
steps() {
	steps=/sys/kernel/debug/mm_batch_meter/one_by_one
	echo "$1" >$steps || fail 'no meter'
	shift
	remote "$@"
	echo 0 >$steps || fail "the meter's one_by_one cannot be set back"
}
