// SPDX-License-Identifier: GPL-2.0
/*
 * dirty_flush in the running kernel: lists of dirty folios that nobody touches while they wait,
 * in each mode. All are written, in order, whatever the mode; and how often was flushed for
 * them. x86 puts a flush off if another CPU has the mm, arm64 in any case.
 */

#include "mm_batch_dirty_flush_kunit.h"

KUNIT_ARRAY_PARAM_DESC(flush_mode, flush_modes, name);

static int flush_init(struct kunit *test)
{
	const struct mode_param *param = test->param_value;

	return dirty_flush_begin(test, param->mode);
}

/* One flush for each batch, or for each folio where there is none. */
static void expect_flushes(struct kunit *test, const unsigned int *pages, unsigned int count)
{
	struct dirty_flush_kunit *k = test->priv;

	expect_batches(test, pages, batched(test) ? count : 0);
	if (IS_ENABLED(CONFIG_X86))
		KUNIT_EXPECT_EQ(test, k->got.nr_ipis, batched(test) && count ? count : k->nr);
}

/* All of a list of folios of one size goes, of which so many fit into a batch, or none waits. */
static void goes(struct kunit *test, unsigned int fit)
{
	struct dirty_flush_kunit *k = test->priv;
	unsigned int batches[8], count = 0, left, pages = k->folios[0].nr_pages;

	if (fit && (LARGE_FOLIOS_WAIT || pages == 1)) {
		for (left = k->nr; left && count < ARRAY_SIZE(batches); left -= min(left, fit))
			batches[count++] = min(left, fit) * pages;
	}
	reclaim_list(test, k->folios, k->nr);
	expect_flushes(test, batches, count);
	KUNIT_EXPECT_EQ(test, rss(current->mm, MM_ANONPAGES), 0);
	KUNIT_EXPECT_EQ(test, rss(current->mm, MM_SHMEMPAGES), 0);
	KUNIT_EXPECT_EQ(test, rss(current->mm, MM_SWAPENTS),
			k->folios[0].file ? 0 : k->nr * pages);
	expect_all_written(test);
	unmap_dirty(test);
}

/* Batches that are full, or not, or the only one. */
static void test_dirty_lists(struct kunit *test)
{
	static const unsigned int lengths[] = { 1, 2, 31, 32, 33, 64, 65, 100 };
	unsigned int i;

	have_other_cpu(test);
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		map_many_dirty(test, lengths[i], 0, false);
		goes(test, FULL_BATCH);
	}
}

/* Shmem does not wait. The first of it is flushed for, and with it what waits. */
static void test_dirty_shmem(struct kunit *test)
{
	static const unsigned int batches[] = { 8 };
	struct dirty_flush_kunit *k = test->priv;

	needs_thp_swap(test);
	have_other_cpu(test);
	map_many_dirty(test, 40, 0, true);
	goes(test, 0);
	map_many_dirty(test, 33, ORDER, true);
	goes(test, 0);

	map_many_dirty(test, 4, 0, false);
	map_many_dirty(test, 3, 0, true);
	map_many_dirty(test, 4, 0, false);
	reclaim_list(test, k->folios, k->nr);
	expect_batches(test, batches, batched(test));
	if (IS_ENABLED(CONFIG_X86))
		KUNIT_EXPECT_EQ(test, k->got.nr_ipis, batched(test) ? 4 : k->nr);
	KUNIT_EXPECT_EQ(test, rss(current->mm, MM_SHMEMPAGES), 0);
	expect_all_written(test);
	unmap_dirty(test);
}

/* Folios of these orders, in this order, and the pages of their batches where all wait. */
static const struct limit {
	struct {
		unsigned int nr, order;
	} folios[4];
	unsigned int batches[4];
	unsigned int small[4];	/* where large folios do not wait */
	bool split;		/* a PMD is, and flushed for */
} limits[] = {
	{ .folios = { { 33, 4 } }, .batches = { 512, 16 } },
	{ .folios = { { 9, 6 } }, .batches = { 512, 64 } },
	{ .folios = { { 3, 8 } }, .batches = { 512, 256 } },
	/* The folio by which it has as many is of the batch. */
	{ .folios = { { 1, 0 }, { 2, 8 }, { 1, 0 } }, .batches = { 513, 1 },
	  .small = { 2 } },
	/* A folio of as many waits for nothing, and what waits does so on. */
	{ .folios = { { 2, 9 } }, .split = true },
	{ .folios = { { 1, 0 }, { 1, 9 }, { 1, 0 } }, .batches = { 2 },
	  .small = { 2 }, .split = true },
};

/* With PAGE_LIMIT pages a batch is full, however few folios they are. */
static void test_dirty_page_limit(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;
	unsigned int i, j, count;

	needs_thp_swap(test);
	have_other_cpu(test);
	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		const struct limit *limit = &limits[i];
		const unsigned int *batches = LARGE_FOLIOS_WAIT ? limit->batches : limit->small;

		for (j = 0; j < ARRAY_SIZE(limit->folios); j++)
			map_many_dirty(test, limit->folios[j].nr, limit->folios[j].order, false);
		for (count = 0; count < ARRAY_SIZE(limit->batches) && batches[count];)
			count++;
		reclaim_list(test, k->folios, k->nr);
		if (limit->split || !LARGE_FOLIOS_WAIT)
			expect_batches(test, batches, batched(test) ? count : 0);
		else
			expect_flushes(test, batches, count);
		expect_all_written(test);
		unmap_dirty(test);
	}
}

/* Those of an even index were written, in order; the others were freed, and are zero. */
static void expect_even_written(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;
	unsigned int i;

	KUNIT_EXPECT_EQ(test, k->got.nr_reclaimed, k->nr);
	KUNIT_EXPECT_EQ(test, k->got.nr_written, k->nr / 2);
	KUNIT_EXPECT_EQ(test, k->got.nr_swapped, k->nr / 2);
	KUNIT_EXPECT_FALSE(test, k->got.pending_at_free);
	for (i = 0; i < k->nr; i++) {
		struct dirty_folio *f = &k->folios[i];

		KUNIT_EXPECT_TRUE_MSG(test, f->freed, "folio %u", i);
		if (!(i & 1))
			KUNIT_EXPECT_PTR_EQ(test, k->got.written[i / 2], f->folio);
		expect_dirty_content(test, f, i & 1);
	}
}

/* What is clean neither waits nor ends a batch. */
static void test_dirty_and_clean(struct kunit *test)
{
	static const unsigned int batches[] = { 20 };
	struct dirty_flush_kunit *k = test->priv;
	unsigned int i;

	have_other_cpu(test);
	for (i = 0; i < 20; i++) {
		map_dirty(test, 0, false);
		map_lazyfree(test, 0);
	}
	reclaim_list(test, k->folios, k->nr);
	expect_batches(test, batches, batched(test));
	expect_even_written(test);
	unmap_dirty(test);
}

/* A folio of the swap cache that is dirty, and not mapped any more. */
static struct dirty_folio *map_unmapped(struct kunit *test)
{
	struct dirty_folio *f = map_in_swap_cache(test);

	folio_lock(f->folio);
	try_to_unmap(f->folio, 0);
	folio_unlock(f->folio);
	KUNIT_ASSERT_FALSE(test, folio_mapped(f->folio));
	return f;
}

/*
 * For which no flush is owed, folios are written one by one, though another CPU has the mm. A
 * clean page in front of them is flushed for before it is freed, which is at the end.
 */
static void test_dirty_unmapped(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;
	struct dirty_folio *clean;
	unsigned int i;

	have_other_cpu(test);
	clean = map_lazyfree(test, 0);
	for (i = 0; i < 5; i++)
		map_unmapped(test);
	reclaim_list(test, k->folios, k->nr);
	expect_batches(test, NULL, 0);
	expect_written(test, clean);
	KUNIT_EXPECT_EQ(test, k->got.nr_reclaimed, k->nr);
	if (IS_ENABLED(CONFIG_X86))
		KUNIT_EXPECT_EQ(test, k->got.nr_ipis, 1);
	for (i = 1; i < k->nr; i++)
		expect_dirty_content(test, &k->folios[i], false);
	unmap_dirty(test);
}

/*
 * Folios that are freed meanwhile are flushed for, and so is the one that waits. The next one
 * owes nothing: it is written at once, in front of that.
 */
static void test_dirty_settled(struct kunit *test)
{
	static const unsigned int batches[] = { 2 };
	struct dirty_flush_kunit *k = test->priv;
	struct dirty_folio *unmapped, *last;
	unsigned int i;

	have_other_cpu(test);
	map_dirty(test, 0, false);
	for (i = 0; i < FOLIO_BATCH_SIZE; i++)
		map_lazyfree(test, 0);
	unmapped = map_unmapped(test);
	last = map_dirty(test, 0, false);
	reclaim_list(test, k->folios, k->nr);

	KUNIT_EXPECT_EQ(test, k->got.nr_reclaimed, k->nr);
	KUNIT_EXPECT_EQ(test, k->got.nr_written, 3);
	KUNIT_EXPECT_PTR_EQ(test, k->got.written[batched(test)], k->folios[0].folio);
	KUNIT_EXPECT_PTR_EQ(test, k->got.written[!batched(test)], unmapped->folio);
	KUNIT_EXPECT_PTR_EQ(test, k->got.written[2], last->folio);
	KUNIT_EXPECT_FALSE(test, k->got.pending_at_write);
	expect_batches(test, batches, batched(test));
	expect_dirty_content(test, &k->folios[0], false);
	expect_dirty_content(test, unmapped, false);
	expect_dirty_content(test, last, false);
	unmap_dirty(test);
}

/*
 * A folio that its file ends in is split when it is written out. Its parts come to the list:
 * those within the file are written, each for itself, as nothing is owed for them any more;
 * those beyond are of nothing. Each page counts once.
 */
static void test_dirty_split(struct kunit *test)
{
	static const unsigned int batches[] = { 2 };
	const unsigned int within = 10, pages = 1 + (1 << ORDER) + 1;
	struct dirty_flush_kunit *k = test->priv;

	have_other_cpu(test);
	map_dirty(test, 0, false);
	map_some_dirty(test, within, ORDER, true);
	map_dirty(test, 0, false);
	reclaim_list(test, k->folios, k->nr);

	expect_batches(test, batches, batched(test));
	KUNIT_EXPECT_EQ(test, k->got.nr_scanned, pages);
	KUNIT_EXPECT_EQ(test, k->got.nr_reclaimed, 1 + within + 1);
	KUNIT_EXPECT_EQ(test, k->got.nr_written, 1 + within + 1);
	KUNIT_EXPECT_EQ(test, k->got.nr_swapped, 1 + within + 1);
	KUNIT_EXPECT_EQ(test, k->got.stat.nr_activate[0], 0);
	KUNIT_EXPECT_FALSE(test, k->got.pending_at_write);
	expect_contents(test);
	unmap_dirty(test);
}

/* With one CPU x86 has flushed in try_to_unmap(): no folio waits. */
static void test_dirty_alone(struct kunit *test)
{
	static const unsigned int batches[] = { 32, 8 };
	struct dirty_flush_kunit *k = test->priv;

	map_many_dirty(test, 40, 0, false);
	reclaim_list(test, k->folios, k->nr);
	expect_batches(test, batches, batched(test) && !IS_ENABLED(CONFIG_X86) ? 2 : 0);
	if (IS_ENABLED(CONFIG_X86))
		KUNIT_EXPECT_EQ(test, k->got.nr_ipis, 0);
	expect_all_written(test);
	unmap_dirty(test);
}

/* The mode "c" is there if a batch in C is. If not, nothing is changed. */
static void test_dirty_mode_c(struct kunit *test)
{
	bool in_c = flush_modes[1].mode == MM_BATCH_C;
	enum mm_batch_mode mode = mm_batch_dirty_flush_mode();

	kunit_warning_suppress(test) {
		mm_batch_dirty_flush_set_mode(MM_BATCH_C);
		KUNIT_EXPECT_SUPPRESSED_WARNING_COUNT(test, IS_ENABLED(CONFIG_BUG) && !in_c);
	}
	KUNIT_EXPECT_EQ(test, mm_batch_dirty_flush_mode(), in_c ? MM_BATCH_C : mode);
}

static struct kunit_case dirty_flush_cases[] = {
	KUNIT_CASE_PARAM(test_dirty_lists, flush_mode_gen_params),
	KUNIT_CASE_PARAM(test_dirty_shmem, flush_mode_gen_params),
	KUNIT_CASE_PARAM(test_dirty_page_limit, flush_mode_gen_params),
	KUNIT_CASE_PARAM(test_dirty_and_clean, flush_mode_gen_params),
	KUNIT_CASE_PARAM(test_dirty_unmapped, flush_mode_gen_params),
	KUNIT_CASE_PARAM(test_dirty_settled, flush_mode_gen_params),
	KUNIT_CASE_PARAM(test_dirty_split, flush_mode_gen_params),
	KUNIT_CASE_PARAM(test_dirty_alone, flush_mode_gen_params),
	KUNIT_CASE_PARAM(test_dirty_mode_c, flush_mode_gen_params),
	{}
};

static struct kunit_suite dirty_flush_suite = {
	.name = "guest_mm_batch_dirty_flush",
	.suite_init = swap_suite_init,
	.init = flush_init,
	.exit = dirty_flush_exit,
	.test_cases = dirty_flush_cases,
};

kunit_test_suite(dirty_flush_suite);
