// SPDX-License-Identifier: GPL-2.0
/*
 * dirty_flush, and what may happen to a folio that waits: it is mapped again, pinned, locked,
 * looked at, taken away, and so on, in the window before the flush. That folio is put back as
 * reclaim would if it had found it so; all others of its batch are written. Nothing is lost, and
 * what was put back can be reclaimed later.
 */

#include "mm_batch_dirty_flush_kunit.h"

#define RACED	5	/* folios of a batch */

static const struct kind_param {
	const char *name;
	unsigned int order;
	enum mm_batch_mode mode;
} kinds[] = {
	{ "4K", 0, MM_BATCH_RUST },
#ifndef CONFIG_ARM64_CONTPTE
	/* Alone, they do not wait there. */
	{ "64K", ORDER, MM_BATCH_RUST },
#endif
#ifdef MM_BATCH_DIRTY_FLUSH_C
	{ "4K, C", 0, MM_BATCH_C },
#ifndef CONFIG_ARM64_CONTPTE
	{ "64K, C", ORDER, MM_BATCH_C },
#endif
#endif
};

KUNIT_ARRAY_PARAM_DESC(kind, kinds, name);

/* One folio of a batch has the end that this says; the default is to be kept as it is. */
struct fate {
	/* In the window, and once reclaim is done. */
	void (*begins)(struct kunit *test, struct dirty_folio *f);
	void (*ends)(struct kunit *test, struct dirty_folio *f);
	bool mapped, activated;
	bool gone;		/* once it has ended, nobody has it any more */
	bool written;		/* by who raced, and then freed by reclaim */
};

static const struct fate *fate;
static struct dirty_folio *victim;
static struct page *pinned;
static long mapped_meanwhile;	/* pages of the mm, behind what happened in the window */

static void begin(struct kunit *test)
{
	fate->begins(test, victim);
	mapped_meanwhile = rss(current->mm, MM_ANONPAGES);
}

/* It is on an LRU list, with its mapping's references, and goes when it is reclaimed again. */
static void expect_kept(struct kunit *test)
{
	const struct reclaimed *again;
	struct folio *folio = victim->folio;

	KUNIT_ASSERT_FALSE(test, victim->freed);
	KUNIT_ASSERT_FALSE(test, folio_test_locked(folio));
	KUNIT_EXPECT_TRUE(test, folio_test_lru(folio));
	expect_active(test, folio, fate->activated);
	KUNIT_EXPECT_EQ(test, folio_mapped(folio), fate->mapped);
	KUNIT_EXPECT_EQ(test, folio_ref_count(folio), folio_expected_ref_count(folio));

	again = reclaim_list(test, victim, 1);
	KUNIT_EXPECT_EQ(test, again->nr_written, 1);
	KUNIT_EXPECT_PTR_EQ(test, again->written[0], folio);
	KUNIT_EXPECT_EQ(test, again->nr_reclaimed, victim->nr_pages);
	KUNIT_EXPECT_TRUE(test, victim->freed);
}

/* Of a list, one has its fate. */
static void expect_fate(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;
	unsigned int pages = victim->nr_pages, batch = RACED * pages, i;
	const struct reclaimed *got = &k->got;

	k->in_window = begin;
	reclaim_list(test, k->folios, k->nr);
	k->in_window = NULL;
	expect_batches(test, &batch, 1);
	expect_written(test, victim);
	KUNIT_EXPECT_EQ(test, got->nr_reclaimed, (RACED - !fate->written) * pages);
	KUNIT_EXPECT_EQ(test, got->nr_swapped, (RACED - !fate->written) * pages);
	KUNIT_EXPECT_EQ(test, got->stat.nr_activate[0], fate->activated * pages);
	KUNIT_EXPECT_EQ(test, got->stat.nr_activate[1], 0);
	KUNIT_EXPECT_EQ(test, got->stat.nr_unmap_fail, fate->mapped * pages);
	if (!fate->gone)
		KUNIT_EXPECT_EQ(test, mapped_meanwhile, fate->mapped * pages);
	KUNIT_EXPECT_EQ(test, rss(current->mm, MM_ANONPAGES), mapped_meanwhile);
	KUNIT_EXPECT_EQ(test, rss(current->mm, MM_SWAPENTS),
			(RACED - (fate->mapped || fate->gone)) * pages);
	if (fate->ends)
		fate->ends(test, victim);
	lru_add_drain();
	if (fate->gone || fate->written)
		KUNIT_EXPECT_TRUE(test, victim->freed);
	else
		expect_kept(test);
	for (i = 0; i < k->nr; i++)
		expect_dirty_content(test, &k->folios[i], fate->gone && &k->folios[i] == victim);
	unmap_dirty(test);
}

/* At each end of a batch, and within it. */
static void race(struct kunit *test, const struct fate *this)
{
	static const unsigned int victims[] = { 0, 2, RACED - 1 };
	const struct kind_param *kind = test->param_value;
	struct dirty_flush_kunit *k = test->priv;
	unsigned int i;

	have_other_cpu(test);
	fate = this;
	for (i = 0; i < ARRAY_SIZE(victims); i++) {
		map_many_dirty(test, RACED, kind->order, false);
		victim = &k->folios[victims[i]];
		expect_fate(test);
	}
}

static void read_it(struct kunit *test, struct dirty_folio *f)
{
	fault_in(test, f, 0);
	expect_dirty_content(test, f, false);
}

/* A fault finds it in the swap cache. */
static void test_dirty_read(struct kunit *test)
{
	race(test, &(struct fate) { .begins = read_it, .mapped = true, .activated = true });
}

static void write_it(struct kunit *test, struct dirty_folio *f)
{
	fault_in(test, f, FOLL_WRITE);
	write_dirty(test, f, f->salt + 0x1000);
}

/* What is written while it waits is not lost. */
static void test_dirty_written_to(struct kunit *test)
{
	race(test, &(struct fate) { .begins = write_it, .mapped = true, .activated = true });
}

static void pin_and_take(struct kunit *test, struct dirty_folio *f)
{
	pinned = NULL;
	KUNIT_EXPECT_EQ(test, pin_user_pages_fast(f->addr, 1, FOLL_WRITE, &pinned), 1);
	KUNIT_EXPECT_PTR_EQ(test, pinned, folio_page(f->folio, 0));
	take_away_and_store(test, f);
	KUNIT_EXPECT_FALSE(test, folio_mapped(f->folio));
}

static void unpin(struct kunit *test, struct dirty_folio *f)
{
	KUNIT_EXPECT_FALSE(test, f->freed);
	expect_active(test, f->folio, true);
	if (pinned)
		unpin_user_page(pinned);
}

/* It is in use, though nothing maps it. */
static void test_dirty_pinned(struct kunit *test)
{
	static const struct fate is_pinned = {
		.begins = pin_and_take, .ends = unpin, .activated = true, .gone = true,
	};

	race(test, &is_pinned);
}

static void get_it(struct kunit *test, struct dirty_folio *f)
{
	folio_get(f->folio);
}

static void put_it(struct kunit *test, struct dirty_folio *f)
{
	expect_active(test, f->folio, false);
	folio_put(f->folio);
}

/* Who has a reference may be about to write. */
static void test_dirty_referenced(struct kunit *test)
{
	race(test, &(struct fate) { .begins = get_it, .ends = put_it });
}

static void lock_it(struct kunit *test, struct dirty_folio *f)
{
	KUNIT_EXPECT_TRUE(test, folio_trylock(f->folio));
}

static void unlock_it(struct kunit *test, struct dirty_folio *f)
{
	KUNIT_ASSERT_TRUE(test, folio_test_locked(f->folio));
	folio_unlock(f->folio);
}

/* Reclaim does not wait for who has locked it. */
static void test_dirty_locked(struct kunit *test)
{
	race(test, &(struct fate) { .begins = lock_it, .ends = unlock_it });
}

static void set_writeback(struct kunit *test, struct dirty_folio *f)
{
	folio_test_set_writeback(f->folio);
}

static void clear_writeback(struct kunit *test, struct dirty_folio *f)
{
	KUNIT_EXPECT_TRUE(test, folio_test_clear_writeback(f->folio));
}

static void test_dirty_under_writeback(struct kunit *test)
{
	race(test, &(struct fate) { .begins = set_writeback, .ends = clear_writeback });
}

/* Of a large folio any page; a flag of the folio says so. */
static void poison(struct kunit *test, struct dirty_folio *f)
{
	SetPageHWPoison(folio_page(f->folio, f->nr_pages - 1));
	if (folio_test_large(f->folio))
		folio_set_has_hwpoisoned(f->folio);
}

static void cure(struct kunit *test, struct dirty_folio *f)
{
	ClearPageHWPoison(folio_page(f->folio, f->nr_pages - 1));
	if (folio_test_large(f->folio))
		folio_clear_has_hwpoisoned(f->folio);
}

static void test_dirty_poisoned(struct kunit *test)
{
	race(test, &(struct fate) { .begins = poison, .ends = cure });
}

static void mlock_it(struct kunit *test, struct dirty_folio *f)
{
	folio_set_mlocked(f->folio);
}

static void clear_mlocked(struct folio *folio)
{
	folio_clear_mlocked(folio);
}

static void munlock_it(struct kunit *test, struct dirty_folio *f)
{
	KUNIT_EXPECT_TRUE(test, folio_test_unevictable(f->folio));
	change_lru(test, f, clear_mlocked);
}

/* It is not to be reclaimed, and not activated, either. */
static void test_dirty_mlocked(struct kunit *test)
{
	race(test, &(struct fate) { .begins = mlock_it, .ends = munlock_it });
}

static void clear_swapbacked(struct kunit *test, struct dirty_folio *f)
{
	folio_clear_swapbacked(f->folio);
}

static void make_swapbacked(struct kunit *test, struct dirty_folio *f)
{
	change_lru(test, f, set_swapbacked);
}

/* As MADV_FREE would leave it: not to be written to swap. */
static void test_dirty_not_swapbacked(struct kunit *test)
{
	race(test, &(struct fate) { .begins = clear_swapbacked, .ends = make_swapbacked });
}

/* Its mapping's references go with it; reclaim puts the last one. */
static void test_dirty_taken(struct kunit *test)
{
	race(test, &(struct fate) { .begins = take_away_and_store, .gone = true });
}

static void read_and_take(struct kunit *test, struct dirty_folio *f)
{
	read_it(test, f);
	take_away_and_store(test, f);
	KUNIT_EXPECT_FALSE(test, folio_mapped(f->folio));
}

static void test_dirty_read_and_taken(struct kunit *test)
{
	race(test, &(struct fate) { .begins = read_and_take, .gone = true });
}

static void take_and_get(struct kunit *test, struct dirty_folio *f)
{
	take_away_and_store(test, f);
	folio_ref_add(f->folio, f->nr_pages);
}

static void put_taken(struct kunit *test, struct dirty_folio *f)
{
	KUNIT_EXPECT_FALSE(test, f->freed);
	KUNIT_EXPECT_EQ(test, folio_ref_count(f->folio), f->nr_pages);
	folio_put_refs(f->folio, f->nr_pages);
}

/* As many references as if it were of something, and it is of nothing. */
static void test_dirty_of_nothing(struct kunit *test)
{
	race(test, &(struct fate) { .begins = take_and_get, .ends = put_taken, .gone = true });
}

static void write_out(struct kunit *test, struct dirty_folio *f)
{
	struct swap_io_ctx ctx = {};

	folio_lock(f->folio);
	KUNIT_EXPECT_TRUE(test, folio_clear_dirty_for_io(f->folio));
	/* Unlocks the folio. */
	KUNIT_EXPECT_EQ(test, swap_writeout(&ctx, f->folio), 0);
	swap_write_submit(&ctx);
}

/* It is clean, so it is freed, and not written twice. */
static void test_dirty_written_out(struct kunit *test)
{
	race(test, &(struct fate) { .begins = write_out, .written = true });
}

static int raced_init(struct kunit *test)
{
	const struct kind_param *param = test->param_value;

	return dirty_flush_begin(test, param->mode);
}

static struct kunit_case dirty_raced_cases[] = {
	KUNIT_CASE_PARAM(test_dirty_read, kind_gen_params),
	KUNIT_CASE_PARAM(test_dirty_written_to, kind_gen_params),
	KUNIT_CASE_PARAM(test_dirty_pinned, kind_gen_params),
	KUNIT_CASE_PARAM(test_dirty_referenced, kind_gen_params),
	KUNIT_CASE_PARAM(test_dirty_locked, kind_gen_params),
	KUNIT_CASE_PARAM(test_dirty_under_writeback, kind_gen_params),
	KUNIT_CASE_PARAM(test_dirty_poisoned, kind_gen_params),
	KUNIT_CASE_PARAM(test_dirty_mlocked, kind_gen_params),
	KUNIT_CASE_PARAM(test_dirty_not_swapbacked, kind_gen_params),
	KUNIT_CASE_PARAM(test_dirty_taken, kind_gen_params),
	KUNIT_CASE_PARAM(test_dirty_read_and_taken, kind_gen_params),
	KUNIT_CASE_PARAM(test_dirty_of_nothing, kind_gen_params),
	KUNIT_CASE_PARAM(test_dirty_written_out, kind_gen_params),
	{}
};

static struct kunit_suite dirty_raced_suite = {
	.name = "guest_mm_batch_dirty_flush_raced",
	.suite_init = swap_suite_init,
	.init = raced_init,
	.exit = dirty_flush_exit,
	.test_cases = dirty_raced_cases,
};

kunit_test_suite(dirty_raced_suite);
