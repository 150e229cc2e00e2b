# SPDX-License-Identifier: GPL-2.0
# The modes of a path from user space, in KTAP: what <path>_modes.sh have in common. They
# set $path, define load, one round of work for the path that fails if something is
# wrong, and call modes.

count=0

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

bad_value_is_refused() {
	before=$(cat "$param")
	for value in fast "" Rust 3; do
		! echo "$value" >"$param" 2>/dev/null || return 1
		[ "$(cat "$param")" = "$before" ] || return 1
	done
}

# All modes again and again while load runs, for as long as both take.
switching_under_load() {
	rm -f /tmp/load_done /tmp/load_failed /tmp/switched
	(
		rounds=0
		while [ $rounds -lt 6 ] || { [ ! -e /tmp/switched ] && [ $rounds -lt 60 ]; }; do
			rounds=$((rounds + 1))
			load || : >/tmp/load_failed
		done
		echo "# $rounds rounds of load"
		: >/tmp/load_done
	) &
	switches=0
	while [ ! -e /tmp/load_done ]; do
		for mode in off rust c rust; do
			set_and_get $mode || return 1
			switches=$((switches + 1))
		done
		[ $switches -lt 100 ] || : >/tmp/switched
	done
	wait
	echo "# $switches switches"
	[ $switches -ge 100 ] && [ ! -e /tmp/load_failed ]
}

no_splat() { ! dmesg | grep -qE 'BUG|WARNING|Bad page|page allocation failure'; }

modes() { # COMMAND... that switches under load
	param=/sys/module/mm_batch/parameters/$path
	echo "KTAP version 1"
	echo "1..7"
	check "the mode given at boot" [ "$(cat "$param")" = \
		"$(sed -n "s/.*mm_batch\.$path=\([a-z]*\).*/\1/p" /proc/cmdline)" ]
	check "mode off" set_and_get off
	check "mode c" set_and_get c
	check "mode rust" set_and_get rust
	check "a bad value is refused and changes nothing" bad_value_is_refused
	check "switching under load" "$@"
	check "no splat" no_splat
}
