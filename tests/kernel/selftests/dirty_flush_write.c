// SPDX-License-Identifier: GPL-2.0
/*
 * What is left where reclaim cannot write a folio out as it is, while others write to it: it is
 * split, as swap has no room for it whole; it stays, as swap is full; or writing it fails, at once
 * or later on. Every byte must be there, which was written last.
 *
 *	dirty_flush_write [SECONDS]
 *
 * so long for each, 2 without.
 *
 * Needs root, for the folio sizes; cgroup2 on /sys/fs/cgroup; swap on block devices that can be
 * switched off and on; zram and loop devices, which it has for swap in their place.
 */

#define _GNU_SOURCE
#include "swap_device.h"
#include "writers.h"

#define SIZE PMD
#define MOST (4 * 1024 * KIB)
#define FALLBACK SWPOUT "swpout_fallback"

static unsigned long wrong, rounds, out, left;

/* Writers and reclaim of new folios, and again for as long as it takes. */
static void write_on_and_on(unsigned long size, bool shared)
{
	unsigned long before = vmstat("pswpout");
	struct timespec start = begin();

	wrong = rounds = left = out = 0;
	for (; !out_of_time(start, out); rounds++) {
		char *at = memory(size, shared);

		start_writers(at, size, false);
		for (int i = 0; i < 8; i++)
			pageout(at, size);
		wrong += end_writers();
		pageout(at, size);
		left += size / PAGE - swapped(at, size);
		wrong += wrong_pages();
		munmap(at, size);
		out = vmstat("pswpout") - before;
	}
	ksft_print_msg("%lu rounds, %lu pages out, %lu left, %lu wrong\n", rounds, out, left, wrong);
}

/* Half of swap is free, each second slot. */
static char *use_each_second(unsigned long size)
{
	char *at = map(reserve(), size + PMD, MAP_PRIVATE);

	if (madvise(at, size + PMD, MADV_NOHUGEPAGE))
		ksft_exit_fail_msg("MADV_NOHUGEPAGE: %s\n", strerror(errno));
	fill_on(at, size + PMD, 1);
	/* Pages of one byte are nothing to a swap device, but have their slots. */
	pageout(at, size + PMD);
	for (unsigned long i = 0; i < (size + PMD) / PAGE; i += 2)
		if (madvise(at + i * PAGE, PAGE, MADV_DONTNEED))
			ksft_exit_fail_msg("MADV_DONTNEED: %s\n", strerror(errno));
	return at;
}

static void test_split(bool shared)
{
	struct swap swap = zram_on(MOST, 0);
	unsigned long before = number_in(FALLBACK), split;
	char *used;

	others_off();
	used = use_each_second(MOST);
	write_on_and_on(SIZE, shared);
	split = number_in(FALLBACK) - before;
	ksft_print_msg("%lu folios split\n", split);
	ksft_test_result(split && out && !wrong, "no room for a whole folio: %s\n",
			 shared ? "shmem" : "anonymous");
	munmap(used, MOST + PMD);
	others_on();
	zram_off(&swap);
}

static void test_full(void)
{
	struct swap swap = zram_on(SIZE / 2, 0);

	others_off();
	write_on_and_on(SIZE, false);
	ksft_test_result(out && left && !wrong, "swap is full\n");
	others_on();
	zram_off(&swap);
}

static void test_errors_at_once(void)
{
	struct swap swap = zram_on(MOST, 4 * PAGE);
	unsigned long failed;

	others_off();
	write_on_and_on(SIZE, false);
	failed = failed_writes(&swap);
	ksft_print_msg("%lu writes failed\n", failed);
	ksft_test_result(failed && out && !wrong, "writing fails at once\n");
	others_on();
	zram_off(&swap);
}

/* At half time each write begins to fail, behind reclaim's back. */
static void test_errors_later(void)
{
	unsigned long before, out_before = 0, failed = 0;
	char *at = memory(SIZE, false);
	int file;
	struct swap swap = loop_on(MOST, 0, &file);
	struct timespec start;

	others_off();
	start_writers(at, SIZE, false);
	before = vmstat("pswpout");
	for (start = begin(); !out_of_time(start, out_before);) {
		pageout(at, SIZE);
		out_before = vmstat("pswpout") - before;
	}
	fail_writes(file);
	before = vmstat("pswpout");
	for (start = begin(); !out_of_time(start, failed);) {
		pageout(at, SIZE);
		failed = vmstat("pswpout") - before;
	}
	wrong = end_writers();
	pageout(at, SIZE);
	wrong += wrong_pages();
	ksft_print_msg("%lu pages out, then %lu failed, %lu wrong\n", out_before, failed, wrong);
	ksft_test_result(out_before && failed && !wrong, "writing fails later on\n");
	munmap(at, SIZE);
	close(file);
	others_on();
	swap_off(&swap);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		seconds = atoi(argv[1]);
	ksft_print_header();
	ksft_set_plan(5);
	begin_anon();
	test_split(true);
	test_split(false);
	test_full();
	test_errors_at_once();
	test_errors_later();
	ksft_finished();
}
