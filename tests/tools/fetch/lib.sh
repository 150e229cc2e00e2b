# SPDX-License-Identifier: GPL-2.0
# Shared by the tools: where the cache is, how an error reads, one run at a time.

export LC_ALL=C.UTF-8
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
cache=${MM_BATCH_CACHE:-${HOME:-/root}/.cache/mm_batch}
downloads=$cache/downloads

# A hook's, or nonsense: git is to find the work tree by itself.
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_COMMON_DIR

say() { printf 'mm_batch: %s\n' "$*" >&2; }

# die CAUSE MEND: one line, exit 1.
die() {
	printf 'mm_batch: error: %s: %s\n' "$1" "$2" >&2
	exit 1
}

# version COMMAND...: the first version number that it prints, or nothing.
version() { "$@" 2>/dev/null | grep -oE '[0-9]+\.[0-9]+(\.[0-9]+)?' | head -n1; }

# at_least WANTED VERSION
at_least() { [ -n "$2" ] && [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n1)" = "$1" ]; }

make_cache() {
	mkdir -p "$cache" 2>/dev/null ||
		die "cannot create the cache $cache" "set MM_BATCH_CACHE= to a folder you may write to"
}

# need_space MIB WHAT: fails early rather than half way.
need_space() {
	local have
	make_cache
	have=$(df -Pm "$cache" | awk 'NR == 2 { print $4 }')
	[ "$have" -ge "$1" ] ||
		die "$2 needs $1 MiB free in $cache, which has $have" \
			"free some, or set MM_BATCH_CACHE= to a larger disk"
}

# lock_cache: holds a lock until this process ends, so that two do not fill the cache at once.
lock_cache() {
	make_cache
	[ -w "$cache" ] || die "$cache is not writable" "set MM_BATCH_CACHE= to a folder you may write to"
	exec 9>"$cache/tools.lock"
	flock -n 9 || die "another mm_batch command is filling $cache" \
		"wait until it ends, or set MM_BATCH_CACHE= to another folder"
}
