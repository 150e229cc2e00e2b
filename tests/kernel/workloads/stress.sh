# SPDX-License-Identifier: GPL-2.0
# In the guest: stress-ng --vm in a memory cgroup of a quarter of what it maps, with zram to swap to, as the seed ran
# it: $stress_mib in all. A row's command sets $value.

meter=/sys/kernel/debug/mm_batch_meter
tracing=/sys/kernel/tracing
event=$tracing/events/mm_batch/mm_batch_run
group=/sys/fs/cgroup/row
lru=/sys/kernel/mm/lru_gen/enabled
memory_cgroups
swap_on $((2 * stress_mib))
mount -t tracefs tracefs $tracing || fail 'no tracefs'
echo 1 >$meter/enable || fail 'no meter'

settle() { echo 3 >/proc/sys/vm/drop_caches; }

# loaded WORKERS MAX PAGES SECONDS: what happened while stress-ng ran; see /stolen.
loaded() {
	mkdir $group && echo "$2" >$group/memory.max || fail 'no cgroup'
	out=$(/stolen "$3" "$4" $group stress-ng --vm "$1" --vm-bytes "${stress_mib}M" --vm-keep \
		--timeout 0 --metrics-brief --temp-path /tmp 2>&1) || fail "$out"
	rmdir $group || fail 'the cgroup does not go'
}

# reclaimed WORKERS gen|classic PAGES [SECONDS]: until so many pages were stolen, or time is up.
reclaimed() {
	case $2 in
	gen) echo y >$lru ;;
	classic) echo n >$lru ;;
	*) false ;;
	esac || fail "no LRU $2"
	loaded "$1" $((stress_mib / 4))M "$3" "${4:-1200}"
}

# stress WORKERS gen|classic PAGES: sets $value to shootdowns, call IPIs, dirty flushes, pages scanned and refaults,
# each by the pages stolen, and what else happened.
stress() {
	reclaimed "$@"
	value=$(echo "$out" | awk '{ is[$1] = $2 } END {
		if (is["stolen"] && is["pgsteal_anon"])
			printf "%.6f %.6f %.6f %.6f %.6f %d %d %d %d %d %.1f %.0f", is["tlb"] / is["stolen"],
				is["cal"] / is["stolen"], is["flush_dirty_done"] / is["stolen"],
				is["pgscan_anon"] / is["pgsteal_anon"],
				(is["refault_anon"] + is["refault_file"]) / is["stolen"], is["oom_kill"],
				is["pgscan_anon"], is["pgsteal_anon"], is["stolen"], is["pgmajfault"], is["seconds"],
				is["bogo"]
	}')
	[ -n "$value" ] || fail 'nothing was stolen'
}

# stress_both ...: the same, with dirty_flush in the row's mode as well.
stress_both() {
	set_mode dirty_flush "$mode"
	stress "$@"
}

# timed WORKERS gen|classic SECONDS: sets $value to the OOM kills of so much time, and how much was done in it.
timed() {
	reclaimed "$1" "$2" 0 "$3"
	value=$(echo "$out" | awk '{ is[$1] = $2 } END {
		printf "%d %d %d %d", is["oom_kill"], is["stolen"], is["pgscan_anon"], is["pgmajfault"]
	}')
}

# floor WORKERS: notes what is not reclaim's: the same load without a limit.
floor() {
	loaded "$1" max 0 10
	note "$(echo "$out" | awk '{ is[$1] = $2 } END {
		printf "without a limit %d shootdowns and %d call IPIs in %.1f s, %d pages stolen", is["tlb"], is["cal"],
			is["seconds"], is["stolen"]
	}')"
}

# batches WORKERS gen|classic PAGES: notes how long the batches are that are flushed at once, of one run more.
batches() {
	set_mode "$path" rust
	set_mode dirty_flush rust
	echo 4096 >$tracing/buffer_size_kb && echo >$tracing/trace && echo 1 >$event/enable || fail 'no event'
	reclaimed "$@"
	echo 0 >$event/enable
	note "$(awk -v path=" path=$path " 'index($0, path) && / outcome=done/ {
		nr = substr($0, index($0, "nr_pages=") + 9) + 0
		for (low = 1; low * 2 <= nr && low < 16; low *= 2)
			;
		if (nr >= 32)
			low = nr == 32 ? 32 : 33
		of[low]++
		batches++
		pages += nr
	} END {
		if (!batches) {
			print "no batch was traced"
			exit
		}
		printf "%d batches, of %.1f pages on the mean; of", batches, pages / batches
		split("1 2 4 8 16 32 33", lows)
		split("1 2-3 4-7 8-15 16-31 32 more", names)
		for (i = 1; i <= 7; i++)
			printf "%s %s pages %.1f %%", (i > 1 ? "," : ""), names[i], 100 * of[lows[i]] / batches
	}' $tracing/trace)"
}
