// SPDX-License-Identifier: GPL-2.0
/*
 * What unmapping an anonymous folio in runs of PTEs must leave, whoever writes to it, shares
 * it or switches swap off meanwhile, and if it fails in the middle: every byte. What it leaves
 * page by page where nobody interferes is in anon_unmap.c, pins are in anon_unmap_pins.c.
 *
 *	anon_unmap_race [SECONDS [switched]]
 *
 * so long for each race, 2 without. switched: somebody switches modes meanwhile.
 *
 * Needs root, for the folio sizes; cgroup2 on /sys/fs/cgroup; and swap on block devices that
 * can be switched off and on.
 */

#define _GNU_SOURCE
#include "writers.h"

#define FOLIOS 8
#define SIZE (FOLIOS * FOLIO)
#define FAULTS "/sys/kernel/debug/fail_mm_batch/"
#define INJECTIONS 1000000ul

static bool switched;

static void test_writers(void)
{
	char *at = memory(SIZE, false);
	/* Where the kernel is slow, they have all back before anybody looks. */
	unsigned long before = vmstat("pswpout"), out = 0, wrong;
	struct timespec start = begin();

	start_writers(at, SIZE, false);
	while (!out_of_time(start, out)) {
		pageout(at, SIZE);
		out = vmstat("pswpout") - before;
	}
	wrong = end_writers();
	ksft_print_msg("%lu pages swapped out, %lu rounds\n", out, writers[0].rounds);
	ksft_test_result(!wrong && out, "what writers wrote is there, swapped out or not\n");
	munmap(at, SIZE);
}

/*
 * Every second page of a folio is exclusive (see test_mix() in anon_unmap.c) when reclaim
 * begins, and the process writes on to all of them.
 */
static void test_mixed(void)
{
	unsigned long rounds = 0, mixed = 0, wrong = 0, out = 0;
	struct timespec start = begin();

	for (; !out_of_time(start, out); rounds++) {
		char *at = folios(FOLIO, rounds);
		unsigned int own = 0;
		pthread_t thread;

		memcpy(seen, at, FOLIO);
		unshare_from(share());
		for (unsigned int i = 0; i < PAGES; i += 2) {
			seen[i * PAGE] = rounds + 100;
			own += write_faults(at + i * PAGE, rounds + 100) &&
			       !write_faults(at + i * PAGE, rounds + 100);
		}
		mixed += is_folio(at) && own == PAGES / 2;
		thread = reclaimer(at);
		for (unsigned int n = 0; n < 32; n++) {
			unsigned int page = n * 7 % PAGES;

			out += swapped(at, FOLIO);
			memset(at + page * PAGE + n * 64, n, 64);
			memset(seen + page * PAGE + n * 64, n, 64);
			wrong += !!memcmp(at, seen, FOLIO);
		}
		end(thread);
		pageout(at, FOLIO);
		wrong += !!memcmp(at, seen, FOLIO);
		munmap(at, FOLIO);
	}
	ksft_print_msg("%lu rounds, %lu with both kinds of pages, %lu pages seen swapped out, %lu wrong\n",
		       rounds, mixed, out, wrong);
	ksft_test_result(mixed * 2 > rounds && out && !wrong,
			 "a folio that is exclusive in part is written to and read\n");
}

/* Whether a path is page by page. */
static bool is_off(const char *path)
{
	char name[64], mode[8] = "";
	FILE *file;

	snprintf(name, sizeof(name), "/sys/module/mm_batch/parameters/%s", path);
	file = fopen(name, "r");
	if (!file || fscanf(file, "%7s", mode) != 1 || fclose(file))
		ksft_exit_fail_msg("no mode of %s\n", path);
	return !strcmp(mode, "off");
}

/* Whether the fault points were met, as they must be but page by page, and in batches of folios. */
static bool fits_mode(unsigned long injected)
{
	return injected || is_off("anon_unmap") || !is_off("folio_batch");
}

/*
 * With counting and the test for pins failing now and then, content stays, what failed is
 * kept, and all goes in the end. Something must fail, where the mode stays what it is and is
 * not to go page by page; folio_batch, which takes all these folios, has no such points.
 */
static void test_faults(void)
{
	static const char * const others[] = { "prepare", "swap_extend" };
	unsigned int rounds = 0, lost = 0, gone = 0, tries = 0, kept = 0;
	char *at = folios(SIZE, 1), path[64], text[16];
	struct timespec start = begin();
	unsigned long injected, left;
	cpu_set_t cpus;
	bool out;

	if (access(FAULTS "probability", W_OK))
		return ksft_test_result_skip("injected failures: no " FAULTS "\n");
	/* Where another CPU has yet to put some on the LRU list, these would not be reclaimed. */
	cpus = stay_on(0);
	for (unsigned int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), FAULTS "%s", others[i]);
		if (!access(path, W_OK))
			write_to(path, "N");
	}
	snprintf(text, sizeof(text), "%lu", INJECTIONS);
	write_to(FAULTS "verbose", "0");
	write_to(FAULTS "times", text);
	write_to(FAULTS "interval", "1");
	write_to(FAULTS "probability", "30");
	for (; !out_of_time(start, rounds); rounds++) {
		unsigned long before = number_in(FAULTS "times"), out_before = vmstat("pswpout");
		unsigned int stayed;

		pageout(at, SIZE);
		stayed = SIZE / PAGE - swapped(at, SIZE);
		kept += stayed;
		/*
		 * All or nothing: each run that fails stays, though another of its folio may not. Where
		 * dirty_flush finds a pin, the folio is unmapped, but stays in memory.
		 */
		gone += number_in(FAULTS "times") != before && !stayed &&
			vmstat("pswpout") - out_before >= SIZE / PAGE;
		lost += !each_byte(at, SIZE, 1);
		memset(at, 1, PAGE);
	}
	left = number_in(FAULTS "times");
	write_to(FAULTS "probability", "0");
	for (unsigned int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), FAULTS "%s", others[i]);
		if (!access(path, W_OK))
			write_to(path, "Y");
	}
	injected = INJECTIONS - left;
	start = begin();
	do {
		pageout(at, SIZE);
		out = swapped(at, SIZE) == SIZE / PAGE;
		tries++;
	} while (!out && !out_of_time(start, true));
	lost += !each_byte(at, SIZE, 1);
	ksft_print_msg("%u rounds, %lu failures, %u pages kept, all out after %u more; %u lost, %u gone that failed\n",
		       rounds, injected, kept, tries, lost, gone);
	ksft_test_result(rounds && out && !lost && !gone && left && (switched || fits_mode(injected)),
			 "injected failures lose nothing\n");
	munmap(at, SIZE);
	run_on(&cpus);
}

/*
 * Swap is switched off while a process has pages there: they are back, each as it was
 * written. In every second round nobody waits, and the process, new to swap, swaps out as
 * it is switched off.
 */
static void test_swapoff(void)
{
	unsigned int wrong = 0, rounds = 0, off = 0, away = 0, raced = 0;
	struct timespec start = begin();

	/* Nowhere else to swap to. */
	for (unsigned int i = 1; i < nr_swaps; i++)
		swap_off(&swaps[i]);
	for (; !out_of_time(start, away); rounds++) {
		bool wait = rounds % 2 == 0, done;
		int reports[2], release[2], status;
		unsigned int gone;
		pid_t child;

		if (pipe(reports) || pipe(release))
			ksft_exit_fail_msg("pipe: %s\n", strerror(errno));
		child = fork();
		if (child < 0)
			ksft_exit_fail_msg("fork: %s\n", strerror(errno));
		if (!child) {
			char *at = folios(FOLIO, rounds);

			pagemap_fd = open("/proc/self/pagemap", O_RDONLY);
			madvise(at, FOLIO, MADV_PAGEOUT);
			gone = swapped(at, FOLIO);
			close(release[1]);
			if (write(reports[1], &gone, sizeof(gone)) != sizeof(gone) ||
			    read(release[0], &gone, 1))
				_exit(1);
			/* 2: still in swap. */
			_exit(swapped(at, FOLIO) ? 2 : !each_byte(at, FOLIO, rounds));
		}
		close(release[0]);
		if (!wait) {
			done = !swapoff(swaps[0].path);
			if (read(reports[0], &gone, sizeof(gone)) != sizeof(gone))
				gone = 0;
			raced += done && gone;
		} else {
			if (read(reports[0], &gone, sizeof(gone)) != sizeof(gone))
				gone = 0;
			done = !swapoff(swaps[0].path);
			away += done ? gone : 0;
			off += done;
		}
		close(release[1]);
		wrong += waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
			 (done ? WEXITSTATUS(status) != 0 : WEXITSTATUS(status) == 1);
		close(reports[0]);
		close(reports[1]);
		if (done)
			swap_on(&swaps[0]);
	}
	for (unsigned int i = 1; i < nr_swaps; i++)
		swap_on(&swaps[i]);
	ksft_print_msg("%u rounds; off %u times with %u pages swapped out, %u times as they were; %u wrong\n",
		       rounds, off, away, raced, wrong);
	ksft_test_result(off && away && !wrong, "swapoff finds what an mm swaps out first\n");
}

int main(int argc, char **argv)
{
	if (argc > 1)
		seconds = atoi(argv[1]);
	switched = argc > 2 && !strcmp(argv[2], "switched");
	ksft_print_header();
	ksft_set_plan(4);
	begin_anon();
	test_writers();
	test_mixed();
	test_faults();
	test_swapoff();
	ksft_finished();
}
