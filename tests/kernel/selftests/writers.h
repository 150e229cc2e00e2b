/* SPDX-License-Identifier: GPL-2.0 */
#ifndef WRITERS_H
#define WRITERS_H
/*
 * Threads on other CPUs that write to memory while it is reclaimed, each to words of its own,
 * and keep book of what they wrote last: a write by a translation that is none any more is
 * missing later. Reclaim has the first CPU, with whom starts and ends them.
 */

#include "anon_unmap_race.h"

#define WRITERS 3
#define MOST_PAGES (3 * PMD / PAGE)

struct writer {
	pthread_t thread;
	unsigned int number;
	unsigned long rounds, wrong;
	uint64_t last[MOST_PAGES];
};

static struct writer writers[WRITERS];
static pthread_t stopper;
static cpu_set_t cpus_before;
static char *written_to;
static unsigned long written_pages;
/* Pages are all zeroes at times, so each has one writer; else they are as fill_on() has them. */
static bool zeroes;
/* How long a writer pauses before each 16 pages, in microseconds. */
static atomic_uint pause_usecs;

/*
 * Reclaim leaves what was written to since it looked last: where it is slow, all of it. So writers
 * pause the longer, the more passes of it in a row took nothing.
 */
static inline void pace_writers(bool took)
{
	unsigned int now = atomic_load(&pause_usecs), longer = 2 * now + 100;

	atomic_store(&pause_usecs, took ? now / 2 : longer > 100000 ? 100000 : longer);
}

static inline void let_reclaim_go(void)
{
	unsigned int usecs = atomic_load(&pause_usecs);

	relax();
	if (usecs && !atomic_load(&stop))
		usleep(usecs);
}

static inline bool writes_to(const struct writer *w, unsigned long page)
{
	return !zeroes || page % WRITERS == w->number;
}

static inline unsigned int word_of(const struct writer *w)
{
	return w->number * 1000 / sizeof(*w->last);
}

static inline void *write_on(void *data)
{
	int others = sysconf(_SC_NPROCESSORS_ONLN) - 1;
	struct writer *w = data;

	if (others > 0)
		stay_on(1 + w->number % others);
	for (; !atomic_load(&stop); w->rounds++) {
		for (unsigned long i = 0; i < written_pages; i++) {
			volatile uint64_t *word = (uint64_t *)(written_to + i * PAGE) + word_of(w);

			if (i % 16 == 0)
				let_reclaim_go();
			if (!writes_to(w, i))
				continue;
			w->wrong += *word != w->last[i];
			w->last[i] = zeroes && (w->rounds + i) % 2 ? 0 : w->rounds + 1;
			*word = w->last[i];
		}
	}
	return NULL;
}

/* Has reclaim wait now and then, wherever it is, while writers go on. */
static inline void *stop_reclaim(void *unused)
{
	struct timespec from = begin();

	stay_on(0);
	go_first();
	while (!atomic_load(&stop)) {
		from = let_others_go(from);
		do
			relax();
		while (usecs_between(from, begin()) < 50);
	}
	return unused;
}

static inline void start_writers(char *at, unsigned long size, bool with_zeroes)
{
	written_to = at;
	written_pages = size / PAGE;
	zeroes = with_zeroes;
	pause_usecs = 0;
	stop = false;
	fill_on(at, size, 1);
	if (zeroes)
		memset(at, 0, size);
	cpus_before = stay_on(0);
	for (unsigned int i = 0; i < WRITERS; i++) {
		struct writer *w = &writers[i];

		w->number = i;
		w->rounds = 0;
		w->wrong = 0;
		for (unsigned long page = 0; page < written_pages; page++)
			w->last[page] = ((uint64_t *)(at + page * PAGE))[word_of(w)];
		if (pthread_create(&w->thread, NULL, write_on, w))
			ksft_exit_fail_msg("pthread_create\n");
	}
	if (pthread_create(&stopper, NULL, stop_reclaim, NULL))
		ksft_exit_fail_msg("pthread_create\n");
}

/* How many pages have a byte that is not what was written there last. */
static inline unsigned long wrong_pages(void)
{
	uint64_t *expected = (uint64_t *)seen;
	unsigned long wrong = 0;

	for (unsigned long i = 0; i < written_pages; i++) {
		memset(expected, zeroes ? 0 : i + 1, PAGE);
		for (unsigned int w = 0; w < WRITERS; w++)
			if (writes_to(&writers[w], i))
				expected[word_of(&writers[w])] = writers[w].last[i];
		wrong += !!memcmp(written_to + i * PAGE, expected, PAGE);
	}
	return wrong;
}

/* How many words writers found wrong, and pages that are now. */
static inline unsigned long end_writers(void)
{
	unsigned long wrong = 0;

	stop = true;
	pthread_join(stopper, NULL);
	for (unsigned int i = 0; i < WRITERS; i++) {
		pthread_join(writers[i].thread, NULL);
		wrong += writers[i].wrong;
	}
	run_on(&cpus_before);
	return wrong + wrong_pages();
}

#endif
