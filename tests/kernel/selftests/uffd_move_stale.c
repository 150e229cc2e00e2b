// SPDX-License-Identifier: GPL-2.0
/*
 * What UFFDIO_MOVE took away is no more written to at its old address: not even by a CPU that
 * has the translation yet, because reclaim has unmapped the page and not flushed.
 *
 *	uffd_move_stale [SECONDS]
 *
 * Reclaim unlocks a dirty page without a flush where it may not write: without __GFP_IO, as
 * memory.reclaim is behind PR_SET_IO_FLUSHER. It then unmaps only what is in the swap cache
 * already. What was swapped out and read is there, mapped writable and exclusive, unless the device
 * is a synchronous one, whose pages leave the cache as they are read: a loop device is not.
 *
 * A thread that preempts reclaim moves what it finds unmapped, and has another CPU write then. It
 * may come when all is flushed; so it tries often. Without the flush in UFFDIO_MOVE, on x86 in an
 * emulator, one page in twelve is written to, a few each second. Skipped on arm64, where this
 * could not fail: it flushes when reclaim looks whether a page was used.
 *
 * Needs root, two CPUs, cgroup2 on /sys/fs/cgroup, and loop devices.
 */

#define _GNU_SOURCE
#include <sys/prctl.h>

#include "anon_unmap_race.h"
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

#define COUNT 32
#define SIZE (COUNT * PAGE)
#define SHARERS 48
#define SWAP_SIZE (16 * 1024 * KIB)
#define KPF_WRITEBACK 8
#define KPF_SWAPCACHE 13

static char *src, *dst;
static int uffd;
/* The page that is to be written to, and the last one that was. */
static atomic_int wanted, written;
/* Changes when nobody moves. */
static atomic_bool reclaiming;
static pthread_mutex_t moving = PTHREAD_MUTEX_INITIALIZER;
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

/*
 * Uses all pages while there is reclaim: reads, or a fault would take them out of the swap cache,
 * then writes. Where it is told a page, it writes the last byte.
 */
static void *use(void *unused)
{
	unsigned int page = 0;

	stay_on(1);
	for (int now = 0; now >= 0; now = atomic_load(&wanted)) {
		volatile char *first = src + page * PAGE;

		if (now != atomic_load(&written)) {
			src[now * PAGE - 1] = 'X';
			atomic_store(&written, now);
		} else if (atomic_load(&reclaiming)) {
			*first = *first;
			page = (page + 1) % COUNT;
		}
		relax();
	}
	return unused;
}

/* Page numbers are from one on. */
static void have_written(int page)
{
	atomic_store(&wanted, page);
	for (unsigned int turns = 0; atomic_load(&written) != page; turns++) {
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
static void move_swapped(void)
{
	uint64_t entries[COUNT];

	if (pread(pagemap_fd, entries, sizeof(entries), (uintptr_t)src / PAGE * 8) != sizeof(entries))
		ksft_exit_fail_msg("pagemap: %s\n", strerror(errno));
	for (unsigned int i = 0; i < COUNT; i++) {
		if (!(entries[i] & PM_SWAP) || !move(i))
			continue;
		/* To a new page there, which is not looked at. */
		have_written(i + 1);
		moved++;
		memset(seen, i + 1, PAGE);
		astray += !!memcmp(dst + i * PAGE, seen, PAGE);
	}
}

/* Runs on reclaim's CPU before it: as long as this does, reclaim stays where it is. */
static void *move_on(void *unused)
{
	stay_on(0);
	go_first();
	while (!atomic_load(&stop)) {
		usleep(100);
		pthread_mutex_lock(&moving);
		if (atomic_load(&reclaiming))
			move_swapped();
		pthread_mutex_unlock(&moving);
	}
	return unused;
}

/*
 * Pages that many have, which reclaim looks at for long: in the same list behind pages that it has
 * unmapped, they put off the flush of these.
 */
static void share_pages(struct sharer *sharers)
{
	char *at = map(src + 2 * PMD - SIZE, SIZE, MAP_PRIVATE);

	if (madvise(at, SIZE, MADV_NOHUGEPAGE) || madvise(src, SIZE, MADV_DONTFORK))
		ksft_exit_fail_msg("madvise: %s\n", strerror(errno));
	fill_on(at, SIZE, 1);
	for (unsigned int i = 0; i < SHARERS; i++)
		sharers[i] = share();
}

static void one_round(void)
{
	fill_cache();
	if (prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0))
		ksft_exit_fail_msg("PR_SET_IO_FLUSHER: %s\n", strerror(errno));
	atomic_store(&reclaiming, true);
	reclaim_once("1M swappiness=max");
	pthread_mutex_lock(&moving);
	atomic_store(&reclaiming, false);
	pthread_mutex_unlock(&moving);
	prctl(PR_SET_IO_FLUSHER, 0, 0, 0, 0);
	if (madvise(src, SIZE, MADV_DONTNEED) || madvise(dst, SIZE, MADV_DONTNEED))
		ksft_exit_fail_msg("MADV_DONTNEED: %s\n", strerror(errno));
}

int main(int argc, char **argv)
{
	struct sharer sharers[SHARERS];
	struct timespec start;
	pthread_t threads[2];
	unsigned int rounds;
	struct swap loop;
	int file;

	if (argc > 1)
		seconds = atoi(argv[1]);
	ksft_print_header();
	ksft_set_plan(1);
#ifdef __aarch64__
	ksft_exit_skip("arm64 flushes when reclaim looks whether a page was used\n");
#endif
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		ksft_exit_skip("one CPU\n");
	loop = loop_on(SWAP_SIZE, &file);
	close(file);
	begin_folios();
	enter_cgroup();
	src = map(reserve(), PMD, MAP_PRIVATE);
	dst = map(src + PMD, SIZE, MAP_PRIVATE);
	if (madvise(src, PMD, MADV_NOHUGEPAGE))
		ksft_exit_fail_msg("MADV_NOHUGEPAGE: %s\n", strerror(errno));
	uffd = userfault(dst, SIZE, UFFD_FEATURE_MOVE, UFFDIO_REGISTER_MODE_MISSING);
	share_pages(sharers);
	stay_on(0);
	if (pthread_create(&threads[0], NULL, use, NULL) ||
	    pthread_create(&threads[1], NULL, move_on, NULL))
		ksft_exit_fail_msg("pthread_create\n");
	start = begin();
	for (rounds = 0; !out_of_time(start, moved); rounds++)
		one_round();
	atomic_store(&stop, true);
	atomic_store(&wanted, -1);
	for (unsigned int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	/* The last first: each has the pipes of those before it. */
	for (unsigned int i = SHARERS; i--;)
		unshare_from(sharers[i]);
	swap_off(&loop);
	ksft_print_msg("%u rounds, %lu pages in the swap cache, %lu moved, %lu written to where they were\n",
		       rounds, cached, moved, astray);
	ksft_test_result(moved && !astray, "what was moved is not written to where it was\n");
	ksft_finished();
}
