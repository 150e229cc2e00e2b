// SPDX-License-Identifier: GPL-2.0
/*
 * What UFFDIO_MOVE took away is no more written to at its old address: not even by a CPU that
 * has the translation yet, because reclaim has unmapped the page and not flushed.
 *
 *	uffd_move_stale [SECONDS]
 *
 * Reclaim that may not write unmaps, of what is anonymous, only what is in the swap cache already.
 * What was swapped out and read is there, mapped writable and exclusive, unless the device is a
 * synchronous one, whose pages leave the cache as they are read: a loop device is not.
 *
 * Without the flush in UFFDIO_MOVE, on x86 in an emulator, one page in twelve is written to, a few
 * each second. Skipped on arm64, where this could not fail: it flushes when reclaim looks whether a
 * page was used.
 *
 * Needs what uffd_stale.h does, and loop devices.
 */

#define _GNU_SOURCE
#include "uffd_stale.h"
#include "swap_device.h"

/* Of newer headers than one may have. */
#ifndef UFFDIO_MOVE
#define UFFD_FEATURE_MOVE (1 << 16)
#define UFFDIO_MOVE _IOWR(UFFDIO, 0x05, struct uffdio_move)
struct uffdio_move {
	__u64 dst;
	__u64 src;
	__u64 len;
	__u64 mode;
	__s64 move;
};
#endif

#define SWAP_SIZE (16 * 1024 * KIB)
#define KPF_WRITEBACK 8
#define KPF_SWAPCACHE 13

static char *dst;
static unsigned long moved, cached, astray;

static uint64_t flags_of(const char *at)
{
	uint64_t entry = pagemap(at), flags = 0;

	if (entry & PM_PRESENT && pread(kpageflags_fd, &flags, 8, (entry & FRAME) * 8) != 8)
		ksft_exit_fail_msg("kpageflags: %s\n", strerror(errno));
	return flags;
}

/* All of the source in the swap cache, mapped, writable and clean. */
static void fill_cache(void)
{
	/* No longer than a disk may take. */
	struct timespec start = begin();

	fill_on(src, SIZE, 1);
	pageout(src, SIZE);
	for (unsigned int i = 0; i < COUNT; i++) {
		volatile char *byte = src + i * PAGE;

		(void)*byte;
		while (flags_of(src + i * PAGE) >> KPF_WRITEBACK & 1 && !out_of_time(start, false))
			usleep(1000);
		cached += flags_of(src + i * PAGE) >> KPF_SWAPCACHE & 1;
	}
	/* What this CPU has swapped in is on the LRU lists, where reclaim sees it. */
	if (madvise(dst, PAGE, MADV_COLD))
		ksft_exit_fail_msg("MADV_COLD: %s\n", strerror(errno));
}

static void have_written(unsigned int page)
{
	int number = want_written(page);

	for (unsigned int turns = 0; atomic_load(&written) != number; turns++) {
		relax();
		/* It may wait for what reclaim has locked. */
		if (turns > 100)
			usleep(100);
	}
}

static bool move(unsigned int page)
{
	struct uffdio_move args = {
		.src = (uintptr_t)src + page * PAGE, .dst = (uintptr_t)dst + page * PAGE,
		.len = PAGE,
	};

	return !ioctl(uffd, UFFDIO_MOVE, &args);
}

/* Moves each page that is in swap, writes where it was, and looks at it. */
static void look(bool while_reclaiming)
{
	uint64_t entries[COUNT];

	if (!while_reclaiming)
		return;
	entries_of_src(entries);
	for (unsigned int i = 0; i < COUNT; i++) {
		if (!(entries[i] & PM_SWAP) || !move(i))
			continue;
		/* To a new page there, which is not looked at. */
		have_written(i);
		moved++;
		memset(seen, i + 1, PAGE);
		astray += !!memcmp(dst + i * PAGE, seen, PAGE);
	}
}

static void one_round(unsigned int unused)
{
	(void)unused;
	fill_cache();
	reclaim_used(false);
	if (madvise(src, SIZE, MADV_DONTNEED) || madvise(dst, SIZE, MADV_DONTNEED))
		ksft_exit_fail_msg("MADV_DONTNEED: %s\n", strerror(errno));
}

int main(int argc, char **argv)
{
	unsigned int rounds;
	struct swap loop;
	int file;

	begin_stale(argc, argv);
	loop = loop_on(SWAP_SIZE, &file);
	close(file);
	begin_folios();
	enter_cgroup();
	src = map(reserve(), PMD, MAP_PRIVATE);
	dst = map(src + PMD, SIZE, MAP_PRIVATE);
	if (madvise(src, PMD, MADV_NOHUGEPAGE))
		ksft_exit_fail_msg("MADV_NOHUGEPAGE: %s\n", strerror(errno));
	uffd = userfault(dst, SIZE, UFFD_FEATURE_MOVE, UFFDIO_REGISTER_MODE_MISSING);
	rounds = race(one_round, &moved);
	swap_off(&loop);
	ksft_print_msg("%u rounds, %lu pages in the swap cache, %lu moved, %lu written to where they were\n",
		       rounds, cached, moved, astray);
	ksft_test_result(moved && !astray, "what was moved is not written to where it was\n");
	ksft_finished();
}
