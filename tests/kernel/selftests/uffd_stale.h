/* SPDX-License-Identifier: GPL-2.0 */
#ifndef UFFD_STALE_H
#define UFFD_STALE_H
/*
 * Pages that reclaim has unmapped and not flushed for, while another CPU uses them, and somebody
 * who preempts reclaim and takes what he finds unmapped: for the tests of userfaultfd.
 *
 * Reclaim unlocks a dirty page without a flush where it may not write: without __GFP_IO, as
 * memory.reclaim is behind PR_SET_IO_FLUSHER. Who looks may come when all is flushed; so he tries
 * often.
 *
 * Needs root, two CPUs, and cgroup2 on /sys/fs/cgroup.
 */

#include <sys/prctl.h>

#include "anon_unmap_race.h"

#define COUNT 32
#define SIZE (COUNT * PAGE)
#define SHARERS 48

static char *src;
static int uffd;
/* The write that is to be done, and the last one that was; -1 is the end. */
static atomic_int wanted, written;
/* Changes when nobody looks. */
static atomic_bool reclaiming;
static pthread_mutex_t looking = PTHREAD_MUTEX_INITIALIZER;

/* The test's one result, which not every machine can have. */
static inline void begin_stale(int argc, char **argv)
{
	if (argc > 1)
		seconds = atoi(argv[1]);
	ksft_print_header();
	ksft_set_plan(1);
#ifdef __aarch64__
	ksft_exit_skip("arm64 flushes when reclaim looks whether a page was used\n");
#endif
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		ksft_exit_skip("one CPU\n");
}

/* Of the test: takes pages that are unmapped, if there is reclaim, and lets nobody wait. */
static void look(bool while_reclaiming);

/*
 * Uses all pages while there is reclaim: reads, or a fault would take them out of the swap cache,
 * then writes. Where a write is wanted, it writes the page's last byte.
 */
static inline void *use(void *unused)
{
	unsigned int page = 0;

	stay_on(1);
	for (int now = 0; now >= 0; now = atomic_load(&wanted)) {
		volatile char *first = src + page * PAGE;

		if (now != atomic_load(&written)) {
			src[(now % COUNT + 1) * PAGE - 1] = 'X';
			atomic_store(&written, now);
		} else if (atomic_load(&reclaiming)) {
			*first = *first;
			page = (page + 1) % COUNT;
		}
		relax();
	}
	return unused;
}

/* Has a page written to: its number, of which no write before had one. */
static inline int want_written(unsigned int page)
{
	static int turn;
	int number = ++turn * COUNT + page;

	atomic_store(&wanted, number);
	return number;
}

/* Runs on reclaim's CPU before it: as long as this does, reclaim stays where it is. */
static inline void *look_on(void *unused)
{
	struct timespec back = begin();

	stay_on(0);
	go_first();
	while (!atomic_load(&stop)) {
		back = let_others_go(back);
		pthread_mutex_lock(&looking);
		look(atomic_load(&reclaiming));
		pthread_mutex_unlock(&looking);
	}
	return unused;
}

static inline void entries_of_src(uint64_t *entries)
{
	if (pread(pagemap_fd, entries, COUNT * 8, (uintptr_t)src / PAGE * 8) != COUNT * 8)
		ksft_exit_fail_msg("pagemap: %s\n", strerror(errno));
}

/*
 * Pages that many have, which reclaim looks at for long: in the same list behind pages that it has
 * unmapped, they put off the flush of these.
 */
static inline void share_pages(struct sharer *sharers)
{
	char *at = map(src + 2 * PMD - SIZE, SIZE, MAP_PRIVATE);

	if (madvise(at, SIZE, MADV_NOHUGEPAGE) || madvise(src, SIZE, MADV_DONTFORK))
		ksft_exit_fail_msg("madvise: %s\n", strerror(errno));
	fill_on(at, SIZE, 1);
	for (unsigned int i = 0; i < SHARERS; i++)
		sharers[i] = share();
}

/* Reclaim, which may write or not. */
static inline void reclaim_used(bool write)
{
	if (!write && prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0))
		ksft_exit_fail_msg("PR_SET_IO_FLUSHER: %s\n", strerror(errno));
	atomic_store(&reclaiming, true);
	reclaim_once("1M swappiness=max");
	pthread_mutex_lock(&looking);
	atomic_store(&reclaiming, false);
	pthread_mutex_unlock(&looking);
	prctl(PR_SET_IO_FLUSHER, 0, 0, 0, 0);
}

/* Rounds until the time is up, which goes on longer if nothing was @taken: how many. */
static inline unsigned int race(void one_round(unsigned int round), const unsigned long *taken)
{
	struct sharer sharers[SHARERS];
	pthread_t user, looker;
	struct timespec start;
	unsigned int rounds;

	share_pages(sharers);
	stay_on(0);
	if (pthread_create(&user, NULL, use, NULL) || pthread_create(&looker, NULL, look_on, NULL))
		ksft_exit_fail_msg("pthread_create\n");
	start = begin();
	for (rounds = 0; !out_of_time(start, *taken); rounds++)
		one_round(rounds);
	atomic_store(&wanted, -1);
	pthread_join(user, NULL);
	/* The user may have waited for it. */
	end(looker);
	/* The last first: each has the pipes of those before it. */
	for (unsigned int i = SHARERS; i--;)
		unshare_from(sharers[i]);
	return rounds;
}

#endif
