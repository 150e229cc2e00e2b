// SPDX-License-Identifier: GPL-2.0
/*
 * What UFFDIO_CONTINUE maps write-protected is not written to without a fault: not even by a CPU
 * that has the translation yet, because reclaim has unmapped the page and not flushed.
 *
 *	uffd_continue_stale [SECONDS]
 *
 * Of a file in memory reclaim leaves no swap entry, but nothing, and the page is in the page cache.
 * Every second round reclaim may write: then it is dirty_flush that unlocks what is not flushed for.
 *
 * Skipped on arm64, where this could not fail, as uffd_move_stale.
 *
 * Needs what uffd_stale.h does.
 */

#define _GNU_SOURCE
#include "uffd_stale.h"

/* Of newer headers than one may have. */
#ifndef UFFDIO_CONTINUE_MODE_WP
#define UFFDIO_CONTINUE_MODE_WP (1 << 1)
#endif

static unsigned long mapped, astray;

/* What has nothing to map is tried again by who wants it. */
static bool map_again(char *at, uint64_t mode)
{
	struct uffdio_continue args = { .range = { (uintptr_t)at, PAGE }, .mode = mode };

	if (!ioctl(uffd, UFFDIO_CONTINUE, &args))
		return true;
	ioctl(uffd, UFFDIO_WAKE, &args.range);
	return false;
}

static void unprotect(char *at)
{
	struct uffdio_writeprotect args = { .range = { (uintptr_t)at, PAGE } };

	if (ioctl(uffd, UFFDIO_WRITEPROTECT, &args))
		ksft_exit_fail_msg("UFFDIO_WRITEPROTECT: %s\n", strerror(errno));
}

/*
 * Whether somebody has come to the page by a fault: by the protection, or by one that finds nothing
 * mapped, as reclaim may have come once more. Nobody waits any more then.
 */
static bool met_fault(const char *page)
{
	struct uffd_msg msg;
	bool met = false;

	while (read(uffd, &msg, sizeof(msg)) == sizeof(msg)) {
		char *at = src + (msg.arg.pagefault.address - (uintptr_t)src) / PAGE * PAGE;

		if (msg.arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WP)
			unprotect(at);
		else
			map_again(at, 0);
		met |= at == page;
	}
	return met;
}

/* Maps each page that is not, has it written to, and sees that the writer comes by the fault. */
static void look(bool while_reclaiming)
{
	uint64_t entries[COUNT];

	met_fault(NULL);
	if (!while_reclaiming)
		return;
	entries_of_src(entries);
	for (unsigned int i = 0; i < COUNT; i++) {
		char *page = src + i * PAGE;
		bool met = false;
		int number;

		if (entries[i] & (PM_PRESENT | PM_SWAP) || !map_again(page, UFFDIO_CONTINUE_MODE_WP))
			continue;
		mapped++;
		number = want_written(i);
		for (unsigned int turns = 0; atomic_load(&written) != number; turns++) {
			met |= met_fault(page);
			relax();
			if (turns > 100)
				usleep(100);
		}
		if (!met)
			unprotect(page);
		astray += !met;
	}
}

static void one_round(unsigned int round)
{
	for (unsigned int i = 0; i < COUNT; i++) {
		volatile char *byte = src + i * PAGE;

		(void)*byte;
	}
	if (madvise(src, SIZE, MADV_COLD))
		ksft_exit_fail_msg("MADV_COLD: %s\n", strerror(errno));
	reclaim_used(round % 2);
}

int main(int argc, char **argv)
{
	unsigned int rounds;

	begin_stale(argc, argv);
	begin_folios();
	enter_cgroup();
	src = memory(SIZE, true);
	if (madvise(src, SIZE, MADV_NOHUGEPAGE))
		ksft_exit_fail_msg("MADV_NOHUGEPAGE: %s\n", strerror(errno));
	fill_on(src, SIZE, 1);
	uffd = userfault(src, SIZE, UFFD_FEATURE_MINOR_SHMEM | UFFD_FEATURE_WP_HUGETLBFS_SHMEM,
			 UFFDIO_REGISTER_MODE_MINOR | UFFDIO_REGISTER_MODE_WP);
	rounds = race(one_round, &mapped);
	ksft_print_msg("%u rounds, %lu pages mapped again, %lu written to without a fault\n", rounds,
		       mapped, astray);
	ksft_test_result(mapped && !astray, "what is mapped write-protected is not written to\n");
	ksft_finished();
}
