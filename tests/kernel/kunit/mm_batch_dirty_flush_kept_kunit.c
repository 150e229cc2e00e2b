// SPDX-License-Identifier: GPL-2.0
/*
 * dirty_flush, and a folio that is not to be written as it is when its turn comes: in each mode it
 * is put back in the same way, and the others of the list are written. Then it can be reclaimed.
 */

#include "mm_batch_dirty_flush_kunit.h"

KUNIT_ARRAY_PARAM_DESC(flush_mode, flush_modes, name);

/* What is to become of it: activated, on the list of anonymous folios or of those of files. */
struct fate {
	bool activated, of_file;
	bool mapped;
	bool lazyfree_fail;
};

/* Reclaims a list in which it has others on both sides. */
static void expect_kept(struct kunit *test, struct dirty_folio *kept, const struct fate *fate)
{
	struct dirty_flush_kunit *k = test->priv;
	const struct reclaim_stat *stat = &k->got.stat;
	unsigned int pages = kept->nr_pages;

	map_dirty(test, 0, false);
	reclaim_list(test, k->folios, k->nr);
	expect_written(test, kept);
	KUNIT_EXPECT_EQ(test, k->got.nr_reclaimed, k->nr - 1);
	KUNIT_EXPECT_EQ(test, stat->nr_activate[0], fate->activated && !fate->of_file ? pages : 0);
	KUNIT_EXPECT_EQ(test, stat->nr_activate[1], fate->activated && fate->of_file ? pages : 0);
	KUNIT_EXPECT_EQ(test, stat->nr_unmap_fail, fate->mapped ? pages : 0);
	KUNIT_EXPECT_EQ(test, stat->nr_lazyfree_fail, fate->lazyfree_fail ? pages : 0);
	KUNIT_ASSERT_FALSE(test, kept->freed);
	KUNIT_EXPECT_FALSE(test, folio_test_locked(kept->folio));
	KUNIT_EXPECT_EQ(test, folio_mapped(kept->folio), fate->mapped);
	expect_active(test, kept->folio, fate->activated);
}

/* Nothing is in its way any more. */
static void expect_gone(struct kunit *test, struct dirty_folio *kept)
{
	struct dirty_flush_kunit *k = test->priv;

	reclaim_list(test, kept, 1);
	KUNIT_EXPECT_EQ(test, k->got.nr_written, 1);
	KUNIT_ASSERT_TRUE(test, kept->freed);
	expect_contents(test);
	unmap_dirty(test);
}

static struct dirty_folio *behind_another(struct kunit *test, bool shmem)
{
	have_other_cpu(test);
	map_dirty(test, 0, false);
	return map_dirty(test, 0, shmem);
}

/* pageout() keeps what somebody else has a reference to: it could not be freed. */
static void test_dirty_referenced(struct kunit *test)
{
	struct dirty_folio *f = behind_another(test, false);

	folio_get(f->folio);
	expect_kept(test, f, &(struct fate) {});
	folio_put(f->folio);
	expect_gone(test, f);
}

/*
 * What cannot be unmapped for a pin is flushed for before it is unlocked: its PTE was away for a
 * moment, and a CPU may have written to it.
 */
static void test_dirty_pinned(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;
	struct page *pages[3];
	unsigned int i;

	have_other_cpu(test);
	for (i = 0; i < ARRAY_SIZE(pages); i++) {
		/* Without its slot, it would be kept before it is unmapped. */
		struct dirty_folio *f = map_in_swap_cache(test);

		KUNIT_ASSERT_EQ(test, pin_user_pages_fast(f->addr, 1, FOLL_WRITE, &pages[i]), 1);
	}
	reclaim_list(test, k->folios, k->nr);
	KUNIT_EXPECT_EQ(test, k->got.nr_written, 0);
	KUNIT_EXPECT_EQ(test, k->got.stat.nr_activate[0], k->nr);
	KUNIT_EXPECT_FALSE(test, k->got.pending_after);
	if (IS_ENABLED(CONFIG_X86))
		KUNIT_EXPECT_EQ(test, k->got.nr_ipis, k->nr);
	for (i = 0; i < k->nr; i++) {
		KUNIT_EXPECT_FALSE(test, folio_test_locked(k->folios[i].folio));
		unpin_user_page(pages[i]);
		expect_dirty_content(test, &k->folios[i], false);
	}
	unmap_dirty(test);
}

static const unsigned int orders[] = { 0, ORDER };

/* pageout() activates what its file will not have written. */
static void test_dirty_refused(struct kunit *test)
{
	struct dirty_folio *f;
	unsigned int i;

	needs_thp_swap(test);
	have_other_cpu(test);
	for (i = 0; i < ARRAY_SIZE(orders); i++) {
		map_dirty(test, 0, false);
		f = map_dirty(test, orders[i], true);
		SHMEM_I(file_inode(f->file))->flags |= SHMEM_F_LOCKED;
		expect_kept(test, f, &(struct fate) { .activated = true });
		SHMEM_I(file_inode(f->file))->flags &= ~SHMEM_F_LOCKED;
		expect_gone(test, f);
	}
}

static void clear_swapbacked(struct folio *folio)
{
	folio_clear_swapbacked(folio);
}

static void set_swapbacked_again(struct folio *folio)
{
	folio_clear_reclaim(folio);
	folio_set_swapbacked(folio);
}

/* What is dirty and of a file is left to writeback. It is not mapped, as its mm would count it. */
static void test_dirty_of_a_file(struct kunit *test)
{
	struct dirty_folio *f = behind_another(test, true);

	lru_add_drain();
	KUNIT_ASSERT_EQ(test, do_madvise(current->mm, f->addr, PAGE_SIZE, MADV_DONTNEED), 0);
	lru_add_drain();
	change_lru(test, f, clear_swapbacked);
	KUNIT_ASSERT_TRUE(test, folio_test_dirty(f->folio));
	expect_kept(test, f, &(struct fate) { .activated = true, .of_file = true });
	KUNIT_EXPECT_TRUE(test, folio_test_reclaim(f->folio));
	change_lru(test, f, set_swapbacked_again);
	expect_gone(test, f);
}

/* It was written to since MADV_FREE, and is not unmapped. */
static void test_dirty_lazyfree(struct kunit *test)
{
	const struct fate is_kept = { .activated = true, .mapped = true, .lazyfree_fail = true };
	struct dirty_folio *f;
	unsigned int i;

	needs_thp_swap(test);
	have_other_cpu(test);
	for (i = 0; i < ARRAY_SIZE(orders); i++) {
		map_dirty(test, 0, false);
		f = map_lazyfree(test, orders[i]);
		write_dirty(test, f, f->salt + 0x1000);
		expect_kept(test, f, &is_kept);
		expect_gone(test, f);
	}
}

static int kept_init(struct kunit *test)
{
	const struct mode_param *param = test->param_value;

	return dirty_flush_begin(test, param->mode);
}

static struct kunit_case dirty_kept_cases[] = {
	KUNIT_CASE_PARAM(test_dirty_referenced, flush_mode_gen_params),
	KUNIT_CASE_PARAM(test_dirty_pinned, flush_mode_gen_params),
	KUNIT_CASE_PARAM(test_dirty_refused, flush_mode_gen_params),
	KUNIT_CASE_PARAM(test_dirty_of_a_file, flush_mode_gen_params),
	KUNIT_CASE_PARAM(test_dirty_lazyfree, flush_mode_gen_params),
	{}
};

static struct kunit_suite dirty_kept_suite = {
	.name = "guest_mm_batch_dirty_flush_kept",
	.suite_init = swap_suite_init,
	.init = kept_init,
	.exit = dirty_flush_exit,
	.test_cases = dirty_kept_cases,
};

kunit_test_suite(dirty_kept_suite);
