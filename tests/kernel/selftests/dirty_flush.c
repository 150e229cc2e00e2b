// SPDX-License-Identifier: GPL-2.0
/*
 * What reclaim writes out is what was written last, whoever writes meanwhile on other CPUs:
 * every byte, of folios of each kind and size, all zeroes or not, in swap or in zswap. What is
 * left where swap has no room or fails is in dirty_flush_write.c.
 *
 *	dirty_flush [SECONDS]
 *
 * so long for each kind, 2 without.
 *
 * Needs root, for the folio sizes; cgroup2 on /sys/fs/cgroup; and swap.
 */

#define _GNU_SOURCE
#include "writers.h"

#define HUGE "/sys/kernel/mm/transparent_hugepage/hugepages-"
#define ZSWAP "/sys/module/zswap/parameters/enabled"
#define LRU_GEN "/sys/kernel/mm/lru_gen/enabled"

/* By MADV_PAGEOUT, or by memory.reclaim from the LRU lists, or from LRU_GEN's generations. */
enum reclaim { MADVISE, LISTS, GENERATIONS };

struct run {
	const char *what;
	unsigned long kib;
	enum reclaim by;
	bool shared, zeroes;
	/* What of /proc/vmstat tells that it was met. */
	const char *met;
};

/*
 * zswap comes last: 7.3.4's own can read back zeroes, where it was switched on behind a pool that
 * could not be made at boot. What fails there alone is to be looked for there first.
 */
static const struct run runs[] = {
	{ "4 KiB, MADV_PAGEOUT", 4, MADVISE, false, false, "pswpout" },
	{ "16 KiB, MADV_PAGEOUT", 16, MADVISE, false, false, "pswpout" },
	{ "64 KiB, MADV_PAGEOUT", 64, MADVISE, false, false, "pswpout" },
	{ "2 MiB, MADV_PAGEOUT", 2048, MADVISE, false, false, "pswpout" },
	{ "4 KiB, memory.reclaim", 4, LISTS, false, false, "pswpout" },
	{ "16 KiB, memory.reclaim", 16, LISTS, false, false, "pswpout" },
	{ "64 KiB, memory.reclaim", 64, LISTS, false, false, "pswpout" },
	{ "4 KiB, memory.reclaim, LRU_GEN", 4, GENERATIONS, false, false, "pswpout" },
	{ "64 KiB, memory.reclaim, LRU_GEN", 64, GENERATIONS, false, false, "pswpout" },
	{ "4 KiB of zeroes, MADV_PAGEOUT", 4, MADVISE, false, true, "swpout_zero" },
	{ "64 KiB of zeroes, MADV_PAGEOUT", 64, MADVISE, false, true, "swpout_zero" },
	{ "4 KiB of zeroes, memory.reclaim", 4, LISTS, false, true, "swpout_zero" },
	{ "4 KiB of shmem, MADV_PAGEOUT", 4, MADVISE, true, false, "pswpout" },
	{ "64 KiB of shmem, MADV_PAGEOUT", 64, MADVISE, true, false, "pswpout" },
	{ "4 KiB of shmem, memory.reclaim", 4, LISTS, true, false, "pswpout" },
	{ "4 KiB of shmem, memory.reclaim, LRU_GEN", 4, GENERATIONS, true, false, "pswpout" },
	{ "4 KiB, zswap", 4, MADVISE, false, false, "zswpout" },
	{ "64 KiB, zswap", 64, MADVISE, false, false, "zswpout" },
};

#define RUNS (sizeof(runs) / sizeof(*runs))

/* A setting of the kernel's that is changed, and put back at the end. */
struct setting {
	char path[96], before[64];
};

static struct setting settings[8];
static unsigned int nr_settings;

static void put_back(void)
{
	while (nr_settings--)
		write_to(settings[nr_settings].path, settings[nr_settings].before);
}

static void remember(const char *path)
{
	struct setting *setting = &settings[nr_settings++];
	char *chosen;
	FILE *file;

	snprintf(setting->path, sizeof(setting->path), "%s", path);
	file = fopen(path, "r");
	if (!file || !fgets(setting->before, sizeof(setting->before), file))
		ksft_exit_fail_msg("%s: %s\n", path, strerror(errno));
	fclose(file);
	/* Of several words the one in brackets. */
	chosen = strchr(setting->before, '[');
	if (chosen) {
		memmove(setting->before, chosen + 1, strlen(chosen));
		*strchr(setting->before, ']') = 0;
	}
}

static const unsigned long sizes[] = { 16, 64, 2048 };

/* Folios of @kib and of no other size, whoever has them; 4 is a page. */
static void choose_folios(unsigned long kib)
{
	for (unsigned int i = 0; i < 3; i++) {
		const char *use = sizes[i] == kib ? "always" : "never";
		char path[96];

		snprintf(path, sizeof(path), HUGE "%lukB/enabled", sizes[i]);
		write_to(path, use);
		snprintf(path, sizeof(path), HUGE "%lukB/shmem_enabled", sizes[i]);
		write_to(path, use);
	}
}

static void test(const struct run *run)
{
	/* Some folios of each size. */
	unsigned long size = run->kib * KIB < PMD ? PMD : 3 * PMD;
	unsigned long before, out = 0, passes = 0, wrong;
	bool zswap = !strcmp(run->met, "zswpout");
	struct timespec start;
	char *at;

	if (zswap && access(ZSWAP, W_OK))
		return ksft_test_result_skip("%s: no " ZSWAP "\n", run->what);
	if (run->by == GENERATIONS && access(LRU_GEN, W_OK))
		return ksft_test_result_skip("%s: no " LRU_GEN "\n", run->what);
	if (!access(ZSWAP, W_OK))
		write_to(ZSWAP, zswap ? "Y" : "N");
	if (run->by != MADVISE && !access(LRU_GEN, W_OK))
		write_to(LRU_GEN, run->by == GENERATIONS ? "y" : "n");
	choose_folios(run->kib);
	at = memory(size, run->shared);
	before = vmstat(run->met);
	start_writers(at, size, run->zeroes);
	for (start = begin(); !out_of_time(start, out); passes++) {
		unsigned long out_before = out;

		if (run->by == MADVISE)
			pageout(at, size);
		else
			reclaim_once("1M swappiness=max");
		out = vmstat(run->met) - before;
		pace_writers(out > out_before);
	}
	wrong = end_writers();
	/* And once more as it is in swap. */
	pageout(at, size);
	wrong += wrong_pages();
	ksft_print_msg("%lu passes, %lu pages out, %lu rounds of a writer, %lu wrong\n", passes, out,
		       writers[0].rounds, wrong);
	ksft_test_result(out && !wrong, "what was written last: %s\n", run->what);
	munmap(at, size);
}

int main(int argc, char **argv)
{
	char path[96];

	if (argc > 1)
		seconds = atoi(argv[1]);
	ksft_print_header();
	ksft_set_plan(RUNS);
	begin_anon();
	for (unsigned int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), HUGE "%lukB/enabled", sizes[i]);
		remember(path);
		snprintf(path, sizeof(path), HUGE "%lukB/shmem_enabled", sizes[i]);
		remember(path);
	}
	if (!access(ZSWAP, W_OK))
		remember(ZSWAP);
	if (!access(LRU_GEN, W_OK))
		remember(LRU_GEN);
	atexit(put_back);
	for (unsigned int i = 0; i < RUNS; i++)
		test(&runs[i]);
	ksft_finished();
}
