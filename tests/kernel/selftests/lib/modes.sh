# SPDX-License-Identifier: GPL-2.0
# The modes of a path from user space, in KTAP: what <path>_modes.sh have in common. They
# set $path, define load, one round of work for the path that fails if something is
# wrong, and call modes. $all_modes are those that it has. If $lasts is set, load goes on for
# as many seconds; else for $enough rounds, 6 if it is not set.

count=0
all_modes="off c rust"

ktap() { # STATUS NAME
	count=$((count + 1))
	echo "$1 $count $2"
}

check() { # NAME COMMAND...
	name=$1
	shift
	if "$@"; then ktap ok "$name"; else ktap "not ok" "$name"; fi
}

# No process but the shell's: under emulation one costs more than the switch.
set_and_get() { echo "$1" >"$param" && read -r now <"$param" && [ "$now" = "$1" ]; }

refused() { # VALUE...
	before=$(cat "$param")
	for value; do
		! echo "$value" >"$param" 2>/dev/null || return 1
		[ "$(cat "$param")" = "$before" ] || return 1
	done
}

# One that the path does not have is a bad value.
set_or_refused() {
	case " $all_modes " in
	*" $1 "*) set_and_get "$1" ;;
	*) refused "$1" ;;
	esac
}

# Whether this kernel has that mode, for a path with which not every kernel does.
offered() {
	param=/sys/module/mm_batch/parameters/$path
	before=$(cat "$param")
	echo "$1" 2>/dev/null >"$param" && set_and_get "$before"
}

uptime() { cut -d. -f1 /proc/uptime; }

# All modes again and again while load runs, for as long as both take.
switching_under_load() {
	rm -f /tmp/load_done /tmp/load_failed /tmp/switched
	(
		rounds=0 begun=$(uptime) lasted=0
		while [ $lasted -lt "${lasts:-0}" ] || { [ -z "$lasts" ] && [ $rounds -lt ${enough:-6} ]; } ||
			{ [ ! -e /tmp/switched ] && [ $rounds -lt 60 ]; }; do
			rounds=$((rounds + 1))
			load || : >/tmp/load_failed
			[ -z "$lasts" ] || [ ! -e /tmp/load_failed ] || break
			lasted=$(($(uptime) - begun))
			[ -z "$lasts" ] || echo "# progress: $((lasted / 60)) of $((lasts / 60)) min, $rounds rounds"
		done
		echo "# $rounds rounds of load"
		: >/tmp/load_done
	) &
	switches=0
	while [ ! -e /tmp/load_done ]; do
		for mode in $all_modes rust; do
			set_and_get $mode || return 1
			switches=$((switches + 1))
			# Where there is time, each mode has some, and load has the CPU.
			[ -z "$lasts" ] || sleep 0.2
		done
		[ $switches -lt 100 ] || : >/tmp/switched
	done
	wait
	echo "# $switches switches"
	[ $switches -ge 100 ] && [ ! -e /tmp/load_failed ]
}

# Where all paths were given a mode that this one does not have, it has its default: rust by our configurations, or $default.
given_at_boot() {
	given=$(sed -n "s/.*mm_batch\.$path=\([a-z]*\).*/\1/p" /proc/cmdline)
	[ "$(cat "$param")" = "${given:-${default:-rust}}" ]
}

no_splat() { ! dmesg | grep -qE 'BUG|WARNING|Bad page|page allocation failure'; }

modes() { # COMMAND... that switches under load
	param=/sys/module/mm_batch/parameters/$path
	echo "KTAP version 1"
	echo "1..7"
	check "the mode given at boot" given_at_boot
	for mode in off c rust; do check "mode $mode, or none of that name" set_or_refused $mode; done
	check "a bad value is refused and changes nothing" refused fast "" Rust 3
	check "switching under load" "$@"
	check "no splat" no_splat
}
