/* SPDX-License-Identifier: GPL-2.0 */
#ifndef ANON_UNMAP_RACE_H
#define ANON_UNMAP_RACE_H
/*
 * Races with reclaim that last as long as asked: for anon_unmap_race and anon_unmap_pins, and
 * those of dirty_flush.
 */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "anon_unmap.h"

static unsigned int seconds = 2;
static atomic_bool stop;
/* What should be there, or came by another way; where the kernel wants it for O_DIRECT. */
static char seen[FOLIO] __attribute__((aligned(PAGE), unused));

static inline struct timespec begin(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now;
}

/* On a busy machine a race may not have been @met in its time: then it has ten times as long, and a minute. */
static inline bool out_of_time(struct timespec start, bool met)
{
	struct timespec now = begin();
	time_t took = now.tv_sec - start.tv_sec - (now.tv_nsec < start.tv_nsec);

	return took >= (time_t)(met ? seconds : 10 * seconds + 60);
}

/* Anonymous, or of a file in memory. */
static inline char *memory(unsigned long size, bool shared)
{
	char *at = map(reserve(), size, MAP_PRIVATE);
	int fd;

	if (!shared)
		return at;
	fd = memfd_create("memory", 0);
	if (fd < 0 || ftruncate(fd, size) ||
	    mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != at)
		ksft_exit_fail_msg("memfd: %s\n", strerror(errno));
	close(fd);
	return at;
}

/* This thread goes before all others on its CPU. */
static inline void go_first(void)
{
	struct sched_param first = { .sched_priority = 1 };

	if (sched_setscheduler(0, SCHED_FIFO, &first))
		ksft_exit_fail_msg("SCHED_FIFO: %s\n", strerror(errno));
}

static inline long usecs_between(struct timespec from, struct timespec to)
{
	return (to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000;
}

/*
 * The sleep of a thread that goes first: as long as it was at work since @slept_at, what it takes to
 * come back included. A fixed one leaves nothing to the others where the machine is slow.
 */
static inline struct timespec let_others_go(struct timespec slept_at)
{
	static long usecs = 100;
	struct timespec back;

	usleep(usecs);
	back = begin();
	usecs = usecs_between(slept_at, back) - usecs;
	usecs = usecs < 100 ? 100 : usecs > 5000 ? 5000 : usecs;
	return back;
}

/* Leaves the host to another CPU, where an emulator has them take turns. */
static inline void relax(void)
{
#ifdef __x86_64__
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	asm volatile("yield");
#endif
}

/* Reclaim of a folio on and on, and its end. */
static inline void *page_out_on(void *at)
{
	while (!atomic_load(&stop))
		pageout(at, FOLIO);
	return NULL;
}

static inline pthread_t reclaimer(char *at)
{
	pthread_t thread;

	stop = false;
	if (pthread_create(&thread, NULL, page_out_on, at))
		ksft_exit_fail_msg("pthread_create\n");
	return thread;
}

static inline void end(pthread_t thread)
{
	stop = true;
	pthread_join(thread, NULL);
}

#endif
