# SPDX-License-Identifier: GPL-2.0
# Reclaim of another task's memory, timed as a whole by /remote. Swap is a RAM disk, files are on the disk that the
# command line has as ubd0. A row's command sets $value.

ram_swap_on
mkdir /scratch && mount -t ext4 /dev/ubda /scratch || fail 'no scratch disk'
memory_cgroups
mkdir /sys/fs/cgroup/row || fail 'no cgroup'

settle() { echo 3 >/proc/sys/vm/drop_caches; }

# remote KIND FOLIO_KIB MIB CONTENT pageout|reclaim: sets $value to nanoseconds per page. With $check it reads back.
remote() {
	out=$(/remote "$@" /scratch/file /sys/fs/cgroup/row $check 2>&1) || fail "$out"
	value=$(echo "$out" | awk '{ for (i = 1; i < NF; i += 2) is[$i] = $(i + 1); printf "%.3f", is["ns"] / is["pages"] }')
}
