/* SPDX-License-Identifier: GPL-2.0 */
#ifndef ANON_UNMAP_H
#define ANON_UNMAP_H
/*
 * Anonymous folios of 64 KiB, or as many single pages, swapped out and brought back: for the
 * selftests of anon_unmap. Needs, beyond what folio.h does, swap on block devices that can be
 * switched off and on.
 */

#include <sys/resource.h>
#include <sys/swap.h>
#include <sys/wait.h>

#include "folio.h"

#define FRAME ((1ull << 55) - 1)
#define SWPOUT "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/stats/"

/* Reclaim of memory that nobody else maps; what is pinned or used lately stays. */
static inline void pageout(char *at, unsigned long size)
{
	if (madvise(at, size, MADV_PAGEOUT))
		ksft_exit_fail_msg("MADV_PAGEOUT: %s\n", strerror(errno));
}

static inline unsigned int swapped(const char *at, unsigned long size)
{
	return count(at, size / PAGE, PM_SWAP);
}

static inline unsigned long number_in(const char *path)
{
	unsigned long number;
	FILE *file = fopen(path, "r");

	if (!file || fscanf(file, "%lu", &number) != 1)
		ksft_exit_fail_msg("%s: no number\n", path);
	fclose(file);
	return number;
}

/* How many folios of 64 KiB were swapped out unsplit since boot. */
static inline unsigned long whole_out(void)
{
	return number_in(SWPOUT "swpout") + number_in(SWPOUT "zswpout");
}

/* Whether a folio's pages have the slots in swap that are for a whole one. */
static inline bool in_one(const char *at)
{
	/* Type and offset; the offset is above the type's five bits. */
	uint64_t first = pagemap(at) & FRAME;

	for (unsigned int i = 0; i < PAGES; i++)
		if ((pagemap(at + i * PAGE) & FRAME) != first + ((uint64_t)i << 5))
			return false;
	return (first >> 5) % PAGES == 0;
}

/* Gives page i of @size at @at the bytes i + @with. */
static inline void fill_on(char *at, unsigned long size, unsigned int with)
{
	for (unsigned long i = 0; i < size / PAGE; i++)
		memset(at + i * PAGE, i + with, PAGE);
}

/* Memory filled so, in folios of one page. */
static inline char *single_pages(unsigned long size, unsigned int with)
{
	char *at = map(reserve(), size, MAP_PRIVATE);

	if (madvise(at, size, MADV_NOHUGEPAGE))
		ksft_exit_fail_msg("MADV_NOHUGEPAGE: %s\n", strerror(errno));
	fill_on(at, size, with);
	return at;
}

/* Whether single pages take the place of folios of 64 KiB. */
static bool single;

/* The same in folios of 64 KiB, if not @single. */
static inline char *folios(unsigned long size, unsigned int with)
{
	char *at;

	if (single)
		return single_pages(size, with);
	at = map(reserve(), size, MAP_PRIVATE);
	fill_on(at, size, with);
	return at;
}

/* Whether 64 KiB of it are mapped as folios() is to do it. */
static inline bool as_asked(const char *from)
{
	return count(from, PAGES, PM_PRESENT) == PAGES && is_folio(from) != single;
}

static inline bool each_byte(const char *at, unsigned long size, unsigned int with)
{
	for (unsigned long i = 0; i < size; i++)
		if (at[i] != (char)(i / PAGE + with))
			return false;
	return true;
}

/* Whether it takes a fault to write @value there. */
static inline bool write_faults(char *at, char value)
{
	struct rusage before, after;

	getrusage(RUSAGE_THREAD, &before);
	*(volatile char *)at = value;
	getrusage(RUSAGE_THREAD, &after);
	return after.ru_minflt + after.ru_majflt != before.ru_minflt + before.ru_majflt;
}

/* The swap devices, as they were found. */
struct swap {
	char path[64];
	int priority;
	/* Of swapon(), beyond the priority. */
	int flags;
};

static struct swap swaps[4];
static unsigned int nr_swaps;

static inline void find_swaps(void)
{
	FILE *file = fopen("/proc/swaps", "r");

	if (!file || fscanf(file, "%*[^\n]\n") < 0)
		ksft_exit_fail_msg("no /proc/swaps\n");
	for (nr_swaps = 0; nr_swaps < 4; nr_swaps++)
		if (fscanf(file, "%63s %*s %*s %*s %d\n", swaps[nr_swaps].path,
			   &swaps[nr_swaps].priority) != 2)
			break;
	fclose(file);
	if (!nr_swaps)
		ksft_exit_fail_msg("no swap\n");
}

static inline void swap_on(const struct swap *swap)
{
	int flags = swap->priority < 0 ? 0 : SWAP_FLAG_PREFER | swap->priority;

	if (swapon(swap->path, flags | swap->flags))
		ksft_exit_fail_msg("swapon %s: %s\n", swap->path, strerror(errno));
}

static inline void swap_off(const struct swap *swap)
{
	if (swapoff(swap->path))
		ksft_exit_fail_msg("swapoff %s: %s\n", swap->path, strerror(errno));
}

/* Brings each swapped page back without a fault. */
static inline void swap_all_in(void)
{
	for (unsigned int i = 0; i < nr_swaps; i++)
		swap_off(&swaps[i]);
	for (unsigned int i = 0; i < nr_swaps; i++)
		swap_on(&swaps[i]);
}

static inline void begin_anon(void)
{
	begin_folios();
	find_swaps();
	enter_cgroup();
}

/*
 * A process of @at's, stopped, which shares the folio; and its end, with which all is the
 * caller's alone again, but no page is known to be so.
 */
struct sharer {
	pid_t pid;
	int release;
};

static inline struct sharer share(void)
{
	struct sharer child;
	int pipes[2];
	char byte;

	if (pipe(pipes))
		ksft_exit_fail_msg("pipe: %s\n", strerror(errno));
	child.pid = fork();
	if (child.pid < 0)
		ksft_exit_fail_msg("fork: %s\n", strerror(errno));
	if (!child.pid) {
		close(pipes[1]);
		_exit(read(pipes[0], &byte, 1) < 0);
	}
	close(pipes[0]);
	child.release = pipes[1];
	return child;
}

static inline void unshare_from(struct sharer child)
{
	close(child.release);
	if (waitpid(child.pid, NULL, 0) != child.pid)
		ksft_exit_fail_msg("waitpid: %s\n", strerror(errno));
}

#endif
