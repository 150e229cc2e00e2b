// SPDX-License-Identifier: GPL-2.0
/*
 * anon_unmap with flushes that are put off, in each mode, of folios that go to swap and of
 * folios that stay. x86 puts a flush off if another CPU has the mm.
 */

#include "mm_batch_anon_unmap_kunit.h"
#include "mm_batch_other_cpu_kunit.h"

/* No PTE is dirty, or writable, but this one may be dirty; nor is the folio. */
static struct mapping map_clean(struct kunit *test, unsigned int before, int dirty)
{
	struct mapping m = map_with_slots(test, before);
	int i;

	for (i = 0; i < NR; i++) {
		pte_t pte = pte_wrprotect(pte_mkclean(pte_at(&m, i)));

		change_pte(&m, i, i == dirty ? pte_mkdirty(pte) : pte);
	}
	folio_clear_dirty(m.folio);
	flush_tlb_mm(m.mm);
	return m;
}

static void expect_pending(struct kunit *test, const struct unmapped *r, int dirty)
{
	KUNIT_EXPECT_TRUE(test, r->pending);
	KUNIT_EXPECT_EQ_MSG(test, r->pending_dirty, dirty >= 0, "dirty %d", dirty);
}

/* One is pending for each run, and is known to be for a dirty PTE if any of its is. */
static void test_swap_deferred(struct kunit *test)
{
	static const unsigned int befores[] = { NR, NR / 2 };
	static const int dirty[] = { -1, 0, 7, NR - 1 };
	struct other_cpu *other = on_other_cpu(test);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(befores) * ARRAY_SIZE(dirty); i++) {
		int which = dirty[i / ARRAY_SIZE(befores)];
		struct mapping m = map_clean(test, befores[i % ARRAY_SIZE(befores)], which);
		struct swapped r;

		wait_for_other_cpu(other);
		r = goes(test, &m, TTU_BATCH_FLUSH);
		expect_pending(test, &r.all, which);
		/* Or nobody would have to write what was written to it. */
		folio_mark_dirty(m.folio);
		expect_content(test, &m);
		unmap_with_slots(&m);
	}
}

/*
 * What comes back may be one translation of many PTEs on arm64, so no flush that was put off
 * may be outstanding then: there is a second one, which waits.
 */
static void test_swap_deferred_kept(struct kunit *test)
{
	static const int dirty[] = { -1, 0 };
	struct other_cpu *other = on_other_cpu(test);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(dirty); i++) {
		struct mapping m = map_clean(test, NR, dirty[i]);
		struct page *page;
		struct swapped r;

		KUNIT_ASSERT_EQ(test, pin_user_pages_fast(m.addr + 7 * PAGE_SIZE, 1, 0, &page), 1);
		wait_for_other_cpu(other);
		r = stays(test, &m, 0, TTU_BATCH_FLUSH);
		expect_pending(test, &r.all, dirty[i]);
		if (all_or_nothing() && ptes_need_break_before_make())
			KUNIT_EXPECT_GE(test, r.all.flushes, 2);
		unpin_user_page(page);
		goes(test, &m, TTU_BATCH_FLUSH);
		folio_mark_dirty(m.folio);
		expect_content(test, &m);
		unmap_with_slots(&m);
	}
}

static struct kunit_case anon_flush_cases[] = {
	KUNIT_CASE_PARAM(test_swap_deferred, anon_mode_gen_params),
	KUNIT_CASE_PARAM(test_swap_deferred_kept, anon_mode_gen_params),
	{}
};

static struct kunit_suite anon_flush_suite = {
	.name = "guest_mm_batch_anon_unmap_flush",
	.suite_init = swap_suite_init,
	.init = anon_unmap_init,
	.exit = anon_unmap_exit,
	.test_cases = anon_flush_cases,
};

kunit_test_suite(anon_flush_suite);
