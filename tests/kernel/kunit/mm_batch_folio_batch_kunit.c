// SPDX-License-Identifier: GPL-2.0
/*
 * folio_batch in the running kernel: lists of folios that one page table maps, in each mode. What
 * becomes of each is the same; how often was flushed for them is not. x86 puts a flush off if
 * another CPU has the mm, arm64 in any case.
 */

#include "mm_batch_dirty_flush_kunit.h"

KUNIT_ARRAY_PARAM_DESC(batch_mode, batch_modes, name);

/* Nothing was owed for a folio that was unlocked, or written, or freed, and nothing is now. */
static void expect_flushed_in_time(struct kunit *test)
{
	const struct reclaimed *got = &((struct dirty_flush_kunit *)test->priv)->got;
	unsigned int i;

	for (i = 0; i < got->nr_windows; i++)
		KUNIT_EXPECT_FALSE_MSG(test, got->pending[i], "batch %u", i);
	KUNIT_EXPECT_FALSE(test, got->pending_at_write);
	KUNIT_EXPECT_FALSE(test, got->pending_at_free);
	KUNIT_EXPECT_FALSE(test, got->pending_after);
}

/* All of these were written, in the order of the list, and flushed for a batch at a time. */
static void expect_gone(struct kunit *test, const struct dirty_folio *first, unsigned int nr)
{
	const struct reclaimed *got = &((struct dirty_flush_kunit *)test->priv)->got;
	const unsigned int batches = DIV_ROUND_UP(nr, SWAP_CLUSTER_MAX);
	const struct mode_param *param = test->param_value;
	unsigned int i;

	KUNIT_EXPECT_EQ(test, got->nr_reclaimed, nr);
	KUNIT_EXPECT_EQ(test, got->nr_scanned, nr);
	KUNIT_EXPECT_EQ(test, got->nr_swapped, nr);
	KUNIT_ASSERT_EQ(test, got->nr_written, nr);
	KUNIT_EXPECT_EQ(test, got->stat.nr_unmap_fail, 0);
	expect_flushed_in_time(test);
	/* Between the unlock and the first write. The batch in C is for measuring, and has none. */
	if (param->mode == MM_BATCH_RUST)
		KUNIT_EXPECT_GE(test, got->nr_windows, batches);
	if (IS_ENABLED(CONFIG_X86)) {
		KUNIT_EXPECT_GE(test, got->nr_ipis, batched(test) ? batches : nr);
		/* A batch ends early where the task is to be rescheduled. */
		KUNIT_EXPECT_LE(test, got->nr_ipis, batched(test) ? 2 * batches : nr);
	}
	for (i = 0; i < nr; i++) {
		KUNIT_EXPECT_PTR_EQ_MSG(test, got->written[i], first[i].folio, "folio %u", i);
		KUNIT_EXPECT_TRUE_MSG(test, first[i].freed, "folio %u", i);
	}
}

/* Batches that are full, or not, or the only one. */
static void test_batch_lists(struct kunit *test)
{
	static const unsigned int lengths[] = { 1, 2, 31, 32, 33, 64, 65, 100 };
	struct dirty_flush_kunit *k = test->priv;
	unsigned long pages;
	unsigned int i;

	have_other_cpu(test);
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		map_neighbours(test, lengths[i]);
		/* As far as CPUs have handed it on: of 64 pages and more it is something. */
		pages = get_mm_rss(current->mm);
		current->mm->hiwater_rss = 0;
		reclaim_list(test, k->folios, k->nr);
		KUNIT_EXPECT_GE(test, current->mm->hiwater_rss, pages);
		expect_gone(test, k->folios, k->nr);
		KUNIT_EXPECT_EQ(test, rss(current->mm, MM_ANONPAGES), 0);
		KUNIT_EXPECT_EQ(test, rss(current->mm, MM_SWAPENTS), k->nr);
		KUNIT_EXPECT_EQ(test, k->free_slots - get_nr_swap_pages(), k->nr);
		expect_contents(test);
		unmap_dirty(test);
	}
}

/*
 * A task that is to be rescheduled does not let those wait who fault on what it has locked: the
 * batch ends, which has one folio. Nothing says so but a flush. An interrupt may be faster, so this
 * is done until it was seen often enough.
 */
static void test_batch_rescheduled(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;
	const unsigned int enough = 6;
	unsigned int i, ended = 0;

	have_other_cpu(test);
	/* Of another architecture no event says that it flushes: all are reclaimed. */
	for (i = 0; i < 64 && ended < enough; i++) {
		map_neighbours(test, SWAP_CLUSTER_MAX);
		k->reschedule = true;
		reclaim_list(test, k->folios, k->nr);
		k->reschedule = false;
		KUNIT_EXPECT_EQ(test, k->got.nr_reclaimed, k->nr);
		ended += !IS_ENABLED(CONFIG_X86) || k->got.nr_ipis > 1;
		unmap_dirty(test);
	}
	KUNIT_EXPECT_EQ(test, ended, enough);
}

/* Between those of the list others are mapped, which stay as they are. */
static void test_batch_gaps(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;
	const unsigned int nr = 80;
	unsigned int i;

	have_other_cpu(test);
	map_neighbours(test, nr);
	/* Every other one first. */
	for (i = 1; i < nr / 2; i++)
		swap(k->folios[i], k->folios[2 * i]);
	reclaim_list(test, k->folios, nr / 2);
	expect_gone(test, k->folios, nr / 2);
	for (i = nr / 2; i < nr; i++)
		KUNIT_EXPECT_TRUE_MSG(test, folio_mapped(k->folios[i].folio), "folio %u", i);
	KUNIT_EXPECT_EQ(test, rss(current->mm, MM_ANONPAGES), nr / 2);
	expect_contents(test);
	unmap_dirty(test);
}

/* In the swap cache already, so that it is not kept before it is unmapped. */
static struct page *pinned_neighbour(struct kunit *test)
{
	struct dirty_folio *f = map_in_swap_cache(test);
	struct page *page = NULL;

	KUNIT_ASSERT_EQ(test, pin_user_pages_fast(f->addr, 1, FOLL_WRITE, &page), 1);
	return page;
}

/* One that is pinned is mapped again, alone. */
static void test_batch_pinned(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;
	const struct reclaimed *got = &k->got;
	struct dirty_folio *f;
	struct page *page;
	unsigned int i;

	have_other_cpu(test);
	map_neighbours(test, 5);
	page = pinned_neighbour(test);
	f = &k->folios[k->nr - 1];
	map_neighbours(test, 5);
	reclaim_list(test, k->folios, k->nr);
	KUNIT_EXPECT_EQ(test, got->nr_reclaimed, k->nr - 1);
	KUNIT_EXPECT_EQ(test, got->nr_scanned, k->nr);
	KUNIT_EXPECT_EQ(test, got->stat.nr_unmap_fail, 1);
	KUNIT_EXPECT_EQ(test, got->stat.nr_activate[0], 1);
	KUNIT_EXPECT_TRUE(test, folio_mapped(f->folio));
	KUNIT_EXPECT_FALSE(test, folio_test_locked(f->folio));
	KUNIT_EXPECT_TRUE(test, PageAnonExclusive(page));
	for (i = 0; i < k->nr; i++)
		KUNIT_EXPECT_EQ_MSG(test, k->folios[i].freed, &k->folios[i] != f, "folio %u", i);
	unpin_user_page(page);
	expect_contents(test);
	unmap_dirty(test);
}

/* Who has a reference to one keeps it: it is unmapped, and not written. */
static void test_batch_referenced(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;
	struct dirty_folio *f;

	have_other_cpu(test);
	map_neighbours(test, 10);
	f = &k->folios[4];
	folio_get(f->folio);
	reclaim_list(test, k->folios, k->nr);
	KUNIT_EXPECT_EQ(test, k->got.nr_reclaimed, k->nr - 1);
	KUNIT_EXPECT_EQ(test, k->got.nr_written, k->nr - 1);
	KUNIT_EXPECT_FALSE(test, folio_test_locked(f->folio));
	KUNIT_EXPECT_FALSE(test, folio_mapped(f->folio));
	KUNIT_EXPECT_EQ(test, k->got.stat.nr_activate[0], 0);
	folio_put(f->folio);
	expect_contents(test);
	unmap_dirty(test);
}

/* Folios of all kinds, each in a page table of its own. */
static void test_batch_mixed(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;
	unsigned int i, pages = 0, written = 0;

	needs_thp_swap(test);
	have_other_cpu(test);
	k->stride = 0;
	for (i = 0; i < 8; i++) {
		map_dirty(test, 0, false);
		map_dirty(test, 0, true);
		map_dirty(test, ORDER, false);
		map_lazyfree(test, 0);
		map_in_swap_cache(test);
	}
	for (i = 0; i < k->nr; i++) {
		pages += k->folios[i].nr_pages;
		written += i % 5 != 3;
	}
	reclaim_list(test, k->folios, k->nr);
	KUNIT_EXPECT_EQ(test, k->got.nr_reclaimed, pages);
	KUNIT_EXPECT_EQ(test, k->got.nr_scanned, pages);
	KUNIT_EXPECT_EQ(test, k->got.nr_written, written);
	expect_flushed_in_time(test);
	KUNIT_EXPECT_EQ(test, rss(current->mm, MM_ANONPAGES), 0);
	KUNIT_EXPECT_EQ(test, rss(current->mm, MM_SHMEMPAGES), 0);
	for (i = 0; i < k->nr; i++) {
		KUNIT_EXPECT_TRUE_MSG(test, k->folios[i].freed, "folio %u", i);
		expect_dirty_content(test, &k->folios[i], i % 5 == 3);
	}
	unmap_dirty(test);
}

/* Lazyfree ones, of which one was written to since: that one stays, and is swap-backed again. */
static void test_batch_lazyfree(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;
	struct dirty_folio *f;
	unsigned int i;

	have_other_cpu(test);
	k->stride = PAGE_SIZE;
	for (i = 0; i < 10; i++)
		map_lazyfree(test, 0);
	f = &k->folios[3];
	write_dirty(test, f, f->salt + 0x1000);
	reclaim_list(test, k->folios, k->nr);
	KUNIT_EXPECT_EQ(test, k->got.nr_reclaimed, k->nr - 1);
	KUNIT_EXPECT_EQ(test, k->got.nr_written, 0);
	KUNIT_EXPECT_EQ(test, k->got.stat.nr_unmap_fail, 1);
	KUNIT_EXPECT_EQ(test, k->got.stat.nr_lazyfree_fail, 1);
	KUNIT_EXPECT_TRUE(test, folio_mapped(f->folio));
	KUNIT_EXPECT_TRUE(test, folio_test_swapbacked(f->folio));
	for (i = 0; i < k->nr; i++)
		expect_dirty_content(test, &k->folios[i], &k->folios[i] != f);
	unmap_dirty(test);
}

/* Two batches of which three quarters are clean, and two folios may be of shmem: one of each. */
static void map_mostly_clean(struct kunit *test, bool shmem)
{
	struct dirty_flush_kunit *k = test->priv;
	const unsigned int nr = 40;
	unsigned int i;

	k->stride = PAGE_SIZE;
	for (i = 0; i < nr; i++) {
		if (i % 4)
			map_lazyfree(test, 0);
		else
			map_dirty(test, 0, shmem && i % (nr - 4) == 0);
	}
}

static void unmap_mostly_clean(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;
	unsigned int i;

	for (i = 0; i < k->nr; i++)
		expect_dirty_content(test, &k->folios[i], i % 4);
	unmap_dirty(test);
}

static void reclaim_mostly_clean(struct kunit *test, bool shmem)
{
	struct dirty_flush_kunit *k = test->priv;

	map_mostly_clean(test, shmem);
	reclaim_list(test, k->folios, k->nr);
	KUNIT_EXPECT_EQ(test, k->got.nr_reclaimed, k->nr);
	KUNIT_EXPECT_EQ(test, k->got.nr_written, k->nr / 4);
	KUNIT_EXPECT_FALSE(test, k->got.pending_at_write);
	KUNIT_EXPECT_FALSE(test, k->got.pending_at_free);
	unmap_mostly_clean(test);
}

/*
 * With dirty_flush, what is dirty of two batches has one flush, behind the unlock. What must not
 * be unlocked before is flushed for with its batch.
 */
static void test_batch_and_dirty_flush(struct kunit *test)
{
	const struct mode_param *param = test->param_value;
	struct dirty_flush_kunit *k = test->priv;

	have_other_cpu(test);
	mm_batch_dirty_flush_set_mode(param->mode);
	reclaim_mostly_clean(test, false);
	if (batched(test)) {
		KUNIT_EXPECT_EQ(test, k->got.nr_batches, 1);
		KUNIT_EXPECT_EQ(test, k->got.batches[0], 10);
		KUNIT_EXPECT_EQ(test, k->got.nr_windows, 1);
		KUNIT_EXPECT_TRUE(test, k->got.pending[0]);
		if (IS_ENABLED(CONFIG_X86))
			KUNIT_EXPECT_EQ(test, k->got.nr_ipis, 1);
	}
	reclaim_mostly_clean(test, true);
	if (batched(test)) {
		expect_flushed_in_time(test);
		KUNIT_EXPECT_GE(test, k->got.nr_windows, 2);
	}
}

/* Faults take back most of what waits. */
static void fault_in_six(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;
	unsigned int i;

	for (i = 0; i < 6; i++)
		fault_in(test, &k->folios[4 * i], 0);
}

/* Most of what waits is not most of what was tried, so that batches go on. */
static void test_batch_taken_back(struct kunit *test)
{
	const struct mode_param *param = test->param_value;
	struct dirty_flush_kunit *k = test->priv;

	have_other_cpu(test);
	mm_batch_dirty_flush_set_mode(param->mode);
	map_mostly_clean(test, false);
	k->in_window = fault_in_six;
	reclaim_list(test, k->folios, k->nr);
	k->in_window = NULL;
	KUNIT_EXPECT_EQ(test, k->got.nr_reclaimed, k->nr - (batched(test) ? 6 : 0));
	KUNIT_EXPECT_EQ(test, k->got.taken_back, 0);
	unmap_mostly_clean(test);
}

/* Of a file that has all pages in the page cache, these. */
struct cached {
	unsigned int nr;
	unsigned char index[4];
};

#define CACHED_PAGES	70
#define LARGE_INDEX	8	/* the first page of the only large folio */
#define LARGE_ORDER	2

static bool on_list(const struct cached *list, pgoff_t index)
{
	unsigned int i;

	/* The pages of a large folio are one entry. */
	if (index - LARGE_INDEX < BIT(LARGE_ORDER))
		index = LARGE_INDEX;
	for (i = 0; i < list->nr; i++)
		if (list->index[i] == index)
			return true;
	return false;
}

/* Those of the list leave a shadow, and the others are still there. Of a bug, the file is left. */
static void expect_removed(struct kunit *test, struct address_space *mapping,
			   const struct cached *list)
{
	unsigned long left = 0;
	pgoff_t i;

	for (i = 0; i < CACHED_PAGES; i++) {
		struct folio *folio = xa_load(&mapping->i_pages, i);

		left += !on_list(list, i);
		if (on_list(list, i) == xa_is_value(folio))
			continue;
		KUNIT_FAIL_AND_ABORT(test, "list from %u: page %lu is %s", list->index[0], i,
				     xa_is_value(folio) ? "gone" : "still there");
	}
	KUNIT_EXPECT_EQ(test, mapping->nrpages, left);
}

/*
 * Pages of a file that nobody maps, behind one that is mapped, which the batch begins with: those
 * of the list leave the page cache, and no others.
 */
static void test_batch_page_cache(struct kunit *test)
{
	/* Where nodes of the XArray begin and end, gaps, backwards, and around a large folio. */
	static const struct cached lists[] = {
		{ 3, { 0, 1, 2 } }, { 3, { 1, 2, 3 } }, { 1, { 1 } },
		{ 3, { 62, 63, 64 } }, { 3, { 63, 64, 65 } }, { 2, { 64, 65 } },
		{ 4, { 0, 2, 3, 66 } }, { 4, { 1, 63, 65, 2 } }, { 3, { 5, 4, 3 } },
		{ 3, { 7, LARGE_INDEX, 12 } }, { 2, { LARGE_INDEX, 1 } },
	};
	struct dirty_flush_kunit *k = test->priv;
	unsigned int i, j, pages;

	for (i = 0; i < ARRAY_SIZE(lists); i++) {
		struct file *file = diskless_file(test, CACHED_PAGES);
		struct folio *folios[CACHED_PAGES];
		pgoff_t at;

		for (at = 0; at < CACHED_PAGES; at += folio_nr_pages(folios[at]))
			folios[at] = add_to_page_cache(test, file, at,
						       at == LARGE_INDEX ? LARGE_ORDER : 0);
		map_dirty(test, 0, false);
		for (j = 0, pages = 1; j < lists[i].nr; j++) {
			struct folio *folio = folios[lists[i].index[j]];

			k->folios[k->nr++] = (struct dirty_folio) { .folio = folio };
			pages += folio_nr_pages(folio);
		}
		reclaim_list(test, k->folios, k->nr);
		KUNIT_EXPECT_EQ(test, k->got.nr_reclaimed, pages);
		KUNIT_EXPECT_EQ(test, k->got.nr_scanned, pages);
		for (j = 0; j < k->nr; j++)
			KUNIT_EXPECT_TRUE_MSG(test, k->folios[j].freed, "folio %u", j);
		k->nr = 1;
		unmap_dirty(test);
		expect_removed(test, file->f_mapping, &lists[i]);
		truncate_inode_pages(file->f_mapping, 0);
		KUNIT_EXPECT_TRUE(test, mapping_empty(file->f_mapping));
		KUNIT_EXPECT_EQ(test, file->f_mapping->nrpages, 0);
		fput(file);
	}
}

static struct kunit_case folio_batch_cases[] = {
	KUNIT_CASE_PARAM(test_batch_lists, batch_mode_gen_params),
	KUNIT_CASE_PARAM(test_batch_rescheduled, batch_mode_gen_params),
	KUNIT_CASE_PARAM(test_batch_gaps, batch_mode_gen_params),
	KUNIT_CASE_PARAM(test_batch_pinned, batch_mode_gen_params),
	KUNIT_CASE_PARAM(test_batch_referenced, batch_mode_gen_params),
	KUNIT_CASE_PARAM(test_batch_mixed, batch_mode_gen_params),
	KUNIT_CASE_PARAM(test_batch_lazyfree, batch_mode_gen_params),
	KUNIT_CASE_PARAM(test_batch_and_dirty_flush, batch_mode_gen_params),
	KUNIT_CASE_PARAM(test_batch_taken_back, batch_mode_gen_params),
	KUNIT_CASE_PARAM(test_batch_page_cache, batch_mode_gen_params),
	{}
};

static struct kunit_suite folio_batch_suite = {
	.name = "guest_mm_batch_folio_batch",
	.suite_init = swap_suite_init,
	.init = folio_batch_begin,
	.exit = dirty_flush_exit,
	.test_cases = folio_batch_cases,
};

kunit_test_suite(folio_batch_suite);
