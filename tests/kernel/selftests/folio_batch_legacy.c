// SPDX-License-Identifier: GPL-2.0
/*
 * Reclaim of folios of one page that a legacy memory cgroup is charged for: it lets go of each
 * before the others are removed from the swap cache. Every byte must be there, the folios must be
 * known when they come back, and the cgroup's count of the swap cache must be what it was.
 *
 *	folio_batch_legacy MOUNT
 *
 * MOUNT is where the legacy memory controller is mounted. Skipped if it is not.
 *
 * Needs root; CONFIG_MEMCG_V1; CONFIG_LRU_GEN; and swap.
 */

#define _GNU_SOURCE
#include "anon_unmap.h"
#include "legacy.h"

#define SIZE PMD
#define LRU_GEN "/sys/kernel/mm/lru_gen/enabled"

static unsigned long refaults(void)
{
	return vmstat("workingset_refault_anon");
}

static unsigned long swapcached(void)
{
	return number_of(of_legacy("memory.stat"), "swapcached");
}

static void test_lru(bool gen)
{
	unsigned long known, cached, left, wrong = 0;
	unsigned int out = 0;
	char *at;

	write_to(LRU_GEN, gen ? "y" : "n");
	at = single_pages(SIZE, 1);
	known = refaults();
	cached = swapcached();
	for (unsigned int i = 0; i < 3; i++) {
		pageout(at, SIZE);
		out += swapped(at, SIZE);
		wrong += !each_byte(at, SIZE, 1);
	}
	known = refaults() - known;
	munmap(at, SIZE);
	/* It is summed up when it is old, or much has changed. */
	left = swapcached();
	for (unsigned int i = 0; i < 30 && left != cached; i++) {
		usleep(200 * 1000);
		left = swapcached();
	}
	ksft_print_msg("%u pages out, %lu known, swapcached %lu and %lu\n", out, known, cached, left);
	/* Some are on no LRU list yet when they are to go, and some come back unknown. */
	ksft_test_result(out > SIZE / PAGE && known > out / 4 && !wrong && left == cached,
			 "a legacy cgroup with%s LRU_GEN\n", gen ? "" : "out");
}

int main(int argc, char **argv)
{
	if (argc < 2)
		ksft_exit_fail_msg("usage: folio_batch_legacy MOUNT\n");
	ksft_print_header();
	ksft_set_plan(2);
	if (!has_legacy(argv[1])) {
		ksft_test_result_skip("no legacy memory cgroup\n");
		ksft_test_result_skip("no legacy memory cgroup\n");
		ksft_finished();
	}
	begin_folios();
	enter_legacy();
	test_lru(false);
	test_lru(true);
	ksft_finished();
}
