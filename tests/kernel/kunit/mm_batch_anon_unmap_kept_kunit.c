// SPDX-License-Identifier: GPL-2.0
/*
 * anon_unmap of what is not to go: large anonymous folios that are pinned, or whose swap
 * entries cannot be counted, in each mode. In a batch no page of the run goes; page by page,
 * those in front do. All others are as they were.
 */

#include "mm_batch_anon_unmap_kunit.h"
#include "../swap_table.h"

/* One page of a folio, at either end or within it, is what keeps the folio. */
static const unsigned int culprits[] = { 0, 7, NR - 1 };

static struct page *pin(struct kunit *test, struct mapping *m, unsigned int i)
{
	struct page *page;

	KUNIT_ASSERT_EQ(test, pin_user_pages_fast(m->addr + i * PAGE_SIZE, 1, 0, &page), 1);
	KUNIT_EXPECT_PTR_EQ(test, page, folio_page(m->folio, i));
	return page;
}

/* A pin of any exclusive page keeps the folio; page by page, shared ones in front go. */
static void test_swap_pinned(struct kunit *test)
{
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(culprits); i++) {
		struct mapping m = map_with_slots(test, NR);
		struct page *page;

		for (j = 0; j < NR; j++) {
			change_pte(&m, j, pte_wrprotect(pte_at(&m, j)));
			if (j < culprits[i])
				share(&m, j);
		}
		page = pin(test, &m, culprits[i]);
		stays(test, &m, all_or_nothing() ? 0 : culprits[i], 0);
		unpin_user_page(page);
		expect_content(test, &m);
		unmap_with_slots(&m);
	}
}

/*
 * The same of PTEs that are not to be used at all, as userfaultfd RWP leaves them: they come
 * back so, frames included, which x86 inverts in such PTEs.
 */
static void test_swap_rwp_pinned(struct kunit *test)
{
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(culprits); i++) {
		struct mapping m = map_with_slots(test, NR);
		struct page *page = pin(test, &m, culprits[i]);
		struct swapped r;

		for (j = 0; j < NR; j++) {
			change_pte(&m, j, pte_mkuffd(pte_modify(pte_at(&m, j), PAGE_NONE)));
			if (j < culprits[i])
				share(&m, j);
		}
		r = stays(test, &m, all_or_nothing() ? 0 : culprits[i], 0);
		KUNIT_EXPECT_TRUE(test, r.pages[NR - 1].protnone);
		unpin_user_page(page);
		goes(test, &m, 0);
		unmap_with_slots(&m);
	}
}

/*
 * Swap-backed, but not in the swap cache: nobody should ask, and is only warned. What was cleared
 * comes back: a run, or page by page a PTE. The batch in C, where there is one, asks before.
 */
static void test_swap_no_swapcache(struct kunit *test)
{
	struct mapping m = map(test, KIND_ANON, NR);
	int refs = folio_ref_count(m.folio);
	pte_t before[NR];
	struct unmapped r;
	unsigned int i;

	for (i = 0; i < NR; i++)
		before[i] = pte_at(&m, i);
	kunit_warning_suppress(test) {
		r = unmap(test, &m, 0);
		KUNIT_EXPECT_SUPPRESSED_WARNING_COUNT(test, IS_ENABLED(CONFIG_BUG));
	}
	KUNIT_EXPECT_EQ(test, r.runs.count, mm_batch_anon_unmap_mode() != MM_BATCH_C);
	for (i = 0; i < NR; i++)
		KUNIT_EXPECT_EQ_MSG(test, pte_val(pte_at(&m, i)), pte_val(before[i]), "PTE %u", i);
	KUNIT_EXPECT_EQ(test, r.mapcount, NR);
	KUNIT_EXPECT_EQ(test, r.refs, refs);
	KUNIT_EXPECT_EQ(test, r.anon, 0);
	KUNIT_EXPECT_EQ(test, r.swap, 0);
	unmap_all(&m);
}

#ifdef CONFIG_FAIL_MM_BATCH
/* The points dup and pin are in the batches alone. */

/* The first try fails at this point, and changes nothing; the second is for all. */
static void fails(struct kunit *test, enum mm_batch_fault point)
{
	unsigned int befores[] = { NR, NR / 2 }, i, j;

	for (i = 0; i < ARRAY_SIZE(befores); i++) {
		struct mapping m = map_with_slots(test, befores[i]);

		for (j = 0; j < NR; j += 3)
			change_pte(&m, j, pte_mkclean(pte_at(&m, j)));
		mm_batch_fail_nth(point, 1);
		stays(test, &m, 0, 0);
		mm_batch_fail_nth(point, 0);
		goes(test, &m, 0);
		expect_content(test, &m);
		unmap_with_slots(&m);
	}
}

/* The second of two runs fails: the first stays swapped out. */
static void fails_later(struct kunit *test, enum mm_batch_fault point)
{
	struct mapping m = map_with_slots(test, NR / 2);

	mm_batch_fail_nth(point, 2);
	stays(test, &m, NR / 2, 0);
	mm_batch_fail_nth(point, 0);
	expect_content(test, &m);
	unmap_with_slots(&m);
}

static void test_swap_fault_dup(struct kunit *test)
{
	fails(test, MM_BATCH_FAULT_SWAP_DUP);
	fails_later(test, MM_BATCH_FAULT_SWAP_DUP);
}

static void test_swap_fault_pin(struct kunit *test)
{
	fails(test, MM_BATCH_FAULT_PIN);
	fails_later(test, MM_BATCH_FAULT_PIN);
}

/*
 * One slot has as many entries as fit without a table of its own, and there is no memory for
 * that: each slot that was counted in front of it has its count back.
 */
static void test_swap_fault_extend(struct kunit *test)
{
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(culprits); i++) {
		struct mapping m = map_with_slots(test, NR);
		struct page *page = folio_page(m.folio, culprits[i]);

		folio_lock(m.folio);
		for (n = 0; n < SWP_TB_COUNT_MAX - 1; n++)
			KUNIT_EXPECT_EQ(test, folio_dup_swap(m.folio, page), 0);
		folio_unlock(m.folio);
		mm_batch_fail_nth(MM_BATCH_FAULT_SWAP_EXTEND, 1);
		stays(test, &m, all_or_nothing() ? 0 : culprits[i], 0);
		mm_batch_fail_nth(MM_BATCH_FAULT_SWAP_EXTEND, 0);
		goes(test, &m, 0);
		folio_lock(m.folio);
		for (n = 0; n < SWP_TB_COUNT_MAX - 1; n++)
			folio_put_swap(m.folio, page);
		folio_unlock(m.folio);
		expect_content(test, &m);
		unmap_with_slots(&m);
	}
}
#else
static void test_swap_fault_dup(struct kunit *test)
{
	kunit_skip(test, "needs CONFIG_FAIL_MM_BATCH");
}

static void test_swap_fault_pin(struct kunit *test)
{
	kunit_skip(test, "needs CONFIG_FAIL_MM_BATCH");
}

static void test_swap_fault_extend(struct kunit *test)
{
	kunit_skip(test, "needs CONFIG_FAIL_MM_BATCH");
}
#endif

static struct kunit_case anon_kept_cases[] = {
	KUNIT_CASE_PARAM(test_swap_pinned, anon_mode_gen_params),
	KUNIT_CASE_PARAM(test_swap_rwp_pinned, anon_mode_gen_params),
	KUNIT_CASE_PARAM(test_swap_no_swapcache, anon_mode_gen_params),
	KUNIT_CASE_PARAM(test_swap_fault_dup, anon_batch_gen_params),
	KUNIT_CASE_PARAM(test_swap_fault_pin, anon_batch_gen_params),
	KUNIT_CASE_PARAM(test_swap_fault_extend, anon_mode_gen_params),
	{}
};

static struct kunit_suite anon_kept_suite = {
	.name = "guest_mm_batch_anon_unmap_kept",
	.suite_init = swap_suite_init,
	.init = anon_unmap_init,
	.exit = anon_unmap_exit,
	.test_cases = anon_kept_cases,
};

kunit_test_suite(anon_kept_suite);
