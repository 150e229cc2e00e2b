# SPDX-License-Identifier: GPL-2.0
# In the guest: MADV_PAGEOUT of memory that /pageout maps, timed by the meter, or as a whole, or its flushes
# counted. A row's command sets $value; <command>_units, where the meter times, says behind it of how many pages
# that is, and what of it is the meter's own.

meter=/sys/kernel/debug/mm_batch_meter
ram_swap_on
echo 1 >$meter/enable || fail 'no meter'

memory_cgroups
mkdir /sys/fs/cgroup/row || fail 'no cgroup'
if [ -b /dev/vda ]; then
	mkdir /scratch && mount -t ext4 /dev/vda /scratch || fail 'no scratch disk'
fi

settle() { echo 3 >/proc/sys/vm/drop_caches; }

# pageout CONTENT FOLIO_KIB MIB whole|split [2cpu]: sets $value to nanoseconds per page in try_to_unmap(), and in all.
pageout() {
	# What it does before and after may wait; it says itself whether the rest was idle.
	idle_allowed=1000000
	echo 1 >$meter/reset
	out=$(/pageout "$3" "$2" "$4" "$1" $5 2>&1) || fail "$out"
	set -- $out
	[ "$9" = 0 ] || fail "$9 of $7 pages are still mapped"
	value="$(awk '{ is[$1] = $2 } END { printf "%.3f", is["ns_net"] / is["pages"] }' $meter/stats) $5"
	[ "${11}" = 0 ] || idle_allowed=-1
}

pageout_units() { awk '{ is[$1] = $2 } END { print is["pages"], int(is["runs"] * is["cost_run"]) }' $meter/stats; }

# whole CONTENT FOLIO_KIB MIB: sets $pages, and $value to nanoseconds per page of the whole call, in which no meter is.
whole() {
	idle_allowed=1000000
	echo 0 >$meter/enable
	out=$(/pageout "$3" "$2" whole "$1" 2>&1) || fail "$out"
	set -- $out
	pages=$7
	[ "$9" = 0 ] || fail "$9 of $pages pages are still mapped"
	value=$(awk -v ns="$5" -v pages="$pages" 'BEGIN { printf "%.3f", ns / pages }')
	[ "${11}" = 0 ] || idle_allowed=-1
}

whole_units() { echo $pages; }

# flushes FOLIO_KIB MIB CPUS [cgroup]: sets $value to the flushes that were done for dirty folios, by the folios paged
# out, and the locks that rmap walks took, by the pages.
flushes() {
	echo 1 >$meter/reset
	out=$(/pageout "$2" "$1" whole data "$3writers" ${4:+- /sys/fs/cgroup/row} 2>&1) || fail "$out"
	set -- "$1" $out
	[ $(($8 - ${10})) -ge $(($8 / 100 * 95)) ] || fail "${10} of $8 pages are still mapped"
	value=$(awk -v pages=$(($8 - ${10})) -v each=$(($1 / 4)) '{ is[$1] = $2 } END {
		printf "%.6f %.6f", is["flush_dirty_done"] / (pages / each), is["rmap_locks"] / pages }' $meter/stats)
}

# holds FOLIO_KIB MIB: sets $value to the longest hold of a page table lock, and of a folio's lock, in nanoseconds.
holds() {
	echo 1 >$meter/holds
	echo 1 >$meter/reset
	out=$(/pageout "$2" "$1" whole data 2>&1) || fail "$out"
	value=$(awk '{ is[$1] = $2 } END { printf "%d %d", is["longest_ptl"], is["longest_lock"] }' $meter/stats)
}

# dirty_file MIB CPUS [cgroup]: sets $value to the flushes that were done, and the interrupts of CPUs to flush, each by
# the pages of a file that is mapped, dirty and written to.
dirty_file() {
	echo 1 >$meter/reset
	out=$(/pageout "$1" 4 whole data "$2writers" /scratch/file ${3:+/sys/fs/cgroup/row} 2>&1) || fail "$out"
	set -- $out
	value="$(awk -v pages="$7" '{ is[$1] = $2 } END { printf "%.6f", is["flush_done"] / pages }' $meter/stats) $(
		awk -v interrupts="${13}" -v pages="$7" 'BEGIN { printf "%.6f", interrupts / pages }') $9"
}

# Swap is a file on the disk from here on, in place of the RAM disk.
swap_to_disk() {
	swapoff /dev/ram0 && dd if=/dev/zero of=/scratch/swap bs=1M count=$1 >/dev/null 2>&1 && sync && mkswap /scratch/swap >/dev/null &&
		swapon /scratch/swap || fail 'no swap on the disk'
}

# What was written to the disk: bios, and the requests that they were merged to. Waits until nothing is on its way.
written() {
	until [ "$(awk '{ print $9 }' /sys/block/vda/stat)" = 0 ]; do sleep 0.1; done
	awk '{ print $5 + $6, $5 }' /sys/block/vda/stat
}

# bios FOLIO_KIB MIB: sets $value to the bios that folios were written to swap in, and the requests, by pages.
bios() {
	[ -e /scratch/swap ] || swap_to_disk $((2 * $2))
	sync
	before=$(written)
	out=$(/pageout "$2" "$1" whole data 2>&1) || fail "$out"
	set -- $out
	[ $(($7 - $9)) -ge $(($7 / 100 * 95)) ] || fail "$9 of $7 pages are still mapped"
	value=$(echo "$before $(written)" | awk -v pages=$(($7 - $9)) '{ printf "%.6f %.6f", ($3 - $1) / pages, ($4 - $2) / pages }')
}

# victim MIB CPUS [cgroup]: sets $value to the interrupts of CPUs to flush, by the pages reclaimed, and to how many of
# their reads the others keep, in %, and how many that are in a millisecond.
victim() {
	[ -z "$3" ] && how=pageout || how=/sys/fs/cgroup/row
	out=$(/victim "$1" "$2" $how 2>&1) || fail "$out"
	value=$(echo "$out" | awk '{ for (i = 2; i < NF; i += 2) is[$i] = $(i + 1)
		printf "%.6f %.2f %.1f", is["interrupts"] / is["pages"], 100 * is["meanwhile"] / is["alone"], is["meanwhile"] }')
}
