// SPDX-License-Identifier: GPL-2.0
/*
 * Each batch of anon_unmap against C, page by page: what try_to_unmap() leaves of large
 * anonymous folios whose PTEs, pages and slots are as chance has them.
 *
 * Where nothing fails, it is the same. Where something does, C has swapped out what came
 * before, and a batch nothing of the run: it is as it was.
 */

#include <linux/prandom.h>
#include "mm_batch_anon_unmap_kunit.h"

/* A case: all that chance decides is decided by the seed. */
struct draw {
	unsigned int before;
	int pinned;		/* a page, or none: -1 */
	u64 seed;
};

/* What there was, and what a mode left of it. */
struct outcome {
	struct swapped before, after;
	struct runs want;
	int refs;
};

/* Give each PTE bits by chance, share some pages, count some slots up, and make holes. */
static void shape(struct mapping *m, const struct draw *draw)
{
	u32 dirty, young, write, soft, uffd, protnone, holes, shared, counted;
	struct rnd_state rnd;
	unsigned int i;

	prandom_seed_state(&rnd, draw->seed);
	dirty = prandom_u32_state(&rnd);
	young = prandom_u32_state(&rnd);
	write = prandom_u32_state(&rnd) % 2 ? 0 : prandom_u32_state(&rnd) | prandom_u32_state(&rnd);
	soft = prandom_u32_state(&rnd) % 2 ? 0 : prandom_u32_state(&rnd) | prandom_u32_state(&rnd);
	uffd = prandom_u32_state(&rnd) % 4 ? 0 : prandom_u32_state(&rnd);
	holes = prandom_u32_state(&rnd) & prandom_u32_state(&rnd) & prandom_u32_state(&rnd);
	shared = prandom_u32_state(&rnd) % 3 ? prandom_u32_state(&rnd) : 0;
	counted = prandom_u32_state(&rnd);
	protnone = prandom_u32_state(&rnd) % 4 ? 0 : ~prandom_u32_state(&rnd);

	for (i = 0; i < NR; i++) {
		pte_t pte;

		/* What is pinned is mapped, and exclusive. */
		if (holes & BIT(i) && i != draw->pinned) {
			zap_vma_range(m->vma, m->addr + i * PAGE_SIZE, PAGE_SIZE);
			continue;
		}
		if (shared & BIT(i) && i != draw->pinned)
			share(m, i);
		pte = pte_mkold(pte_mkclean(pte_wrprotect(pte_at(m, i))));
		if (write & BIT(i) && PageAnonExclusive(folio_page(m->folio, i)))
			pte = pte_mkwrite(pte, m->vma);
		if (protnone & BIT(i))
			pte = pte_modify(pte, PAGE_NONE);
		if (dirty & BIT(i))
			pte = pte_mkdirty(pte);
		/* pte_mkdirty() may have set it. */
		pte = pte_clear_soft_dirty(pte);
		if (soft & BIT(i))
			pte = pte_mksoft_dirty(pte);
		if (young & BIT(i))
			pte = pte_mkyoung(pte);
		if (uffd & BIT(i))
			pte = pte_mkuffd(pte);
		change_pte(m, i, pte);
	}
	flush_tlb_mm(m->mm);
	folio_lock(m->folio);
	for (i = 0; i < NR; i++) {
		if (counted & BIT(i))
			WARN_ON(folio_dup_swap(m->folio, folio_page(m->folio, i)));
	}
	folio_clear_dirty(m->folio);
	folio_unlock(m->folio);
}

/* Puts back what shape() counted: of what is left, entries are the mm's. */
static void put_counts(struct mapping *m, const struct outcome *o)
{
	unsigned int i;

	folio_lock(m->folio);
	folio_mark_dirty(m->folio);
	for (i = 0; i < NR; i++) {
		if (o->before.pages[i].count)
			folio_put_swap(m->folio, folio_page(m->folio, i));
	}
	folio_unlock(m->folio);
}

static void run(struct kunit *test, enum mm_batch_mode mode, const struct draw *draw,
		struct outcome *o)
{
	struct mapping m = map_with_slots(test, draw->before);
	struct page *page = NULL;
	unsigned int i;

	/* While it can be used. */
	if (draw->pinned >= 0)
		KUNIT_ASSERT_EQ(test, pin_user_pages_fast(m.addr + draw->pinned * PAGE_SIZE, 1,
							  0, &page), 1);
	mmap_read_lock(m.mm);
	shape(&m, draw);
	mmap_read_unlock(m.mm);
	mm_batch_anon_unmap_set_mode(mode);
	look(&m, &o->before);
	o->want = expected_anon_runs(&m);
	o->refs = folio_ref_count(m.folio);
	o->after = swap_out(test, &m, 0);
	expect_runs(test, &o->after.all.runs, &o->want, o->after.all.runs.count);
	o->refs -= o->after.all.refs;
	for (i = 0; i < NR; i++) {
		if (o->after.pages[i].swapped)
			expect_swapped(test, &m, &o->after.pages[i], &o->before.pages[i], i);
		else
			expect_as_before(test, &o->after.pages[i], &o->before.pages[i], i);
	}
	KUNIT_EXPECT_EQ(test, o->refs, o->after.nr);
	KUNIT_EXPECT_EQ(test, o->after.all.anon, o->after.nr);
	KUNIT_EXPECT_EQ(test, o->after.all.swap, -(long)o->after.nr);
	if (page)
		unpin_user_page(page);
	put_counts(&m, o);
	unmap_with_slots(&m);
}

/* Whether a page was cleared, and came back: with the last run, behind which nothing is tried. */
static bool was_restored(const struct outcome *o, unsigned int i)
{
	const struct runs *runs = &o->after.all.runs;

	return o->after.all.mapcount && o->after.pages[i].mapped && runs->count &&
	       i >= runs->run[runs->count - 1].first && i < end_of_run(runs, runs->count - 1);
}

/* What so many draws came to, so that a test that met nothing fails. */
struct seen {
	unsigned int c_runs, batch_runs, gone, kept, partly, prefix;
	unsigned int protnone, restored_protnone; /* pages */
};

static void test_anon_as_c(struct kunit *test)
{
	const struct mode_param *batch = test->param_value;
	static const unsigned int befores[] = { NR, NR / 2, 1, NR + 5 };
	/* Too much for the stack. */
	static struct outcome c, got;
	struct seen seen = {};
	unsigned int i, j;

	for (i = 0; i < 192; i++) {
		struct draw draw = {
			.before = befores[i % ARRAY_SIZE(befores)],
			.pinned = i % 3 ? -1 : (int)(i / 3 % NR),
			.seed = i,
		};

		run(test, MM_BATCH_OFF, &draw, &c);
		run(test, batch->mode, &draw, &got);
		/* A run that is restored has handed on that a PTE of it was dirty. */
		KUNIT_EXPECT_GE(test, got.after.all.dirty, c.after.all.dirty);
		KUNIT_EXPECT_LE(test, got.after.nr, c.after.nr);
		for (j = 0; j < NR; j++) {
			const struct page_state *a = &c.after.pages[j], *b = &got.after.pages[j];

			/* Of a run that fails, C may have swapped out the first pages. */
			if (a->swapped && !b->swapped) {
				KUNIT_EXPECT_GE(test, draw.pinned, 0);
				seen.prefix++;
				continue;
			}
			KUNIT_EXPECT_EQ_MSG(test, a->swapped, b->swapped, "page %u", j);
			KUNIT_EXPECT_EQ_MSG(test, a->mapped, b->mapped, "page %u", j);
			KUNIT_EXPECT_EQ_MSG(test, a->exclusive, b->exclusive, "page %u", j);
			KUNIT_EXPECT_EQ_MSG(test, a->soft_dirty, b->soft_dirty, "page %u", j);
			KUNIT_EXPECT_EQ_MSG(test, a->uffd, b->uffd, "page %u", j);
			KUNIT_EXPECT_EQ_MSG(test, a->count, b->count, "page %u", j);
		}
		if (draw.pinned < 0) {
			KUNIT_EXPECT_EQ(test, c.after.nr, got.after.nr);
			KUNIT_EXPECT_EQ(test, got.after.all.mapcount, 0);
			KUNIT_EXPECT_EQ(test, got.after.all.dirty, c.after.all.dirty);
		}
		seen.c_runs += c.after.all.runs.count;
		seen.batch_runs += got.after.all.runs.count;
		seen.gone += !got.after.all.mapcount;
		seen.kept += got.after.all.mapcount && !got.after.nr;
		seen.partly += got.after.all.mapcount && got.after.nr;
		for (j = 0; j < NR; j++) {
			if (!got.before.pages[j].protnone)
				continue;
			seen.protnone += got.after.pages[j].swapped;
			seen.restored_protnone += was_restored(&got, j);
		}
	}
	kunit_info(test, "%u runs in C, %u in %s; %u gone, %u kept, %u in part; %u pages of a failing run in C",
		   seen.c_runs, seen.batch_runs, batch->name, seen.gone, seen.kept, seen.partly,
		   seen.prefix);
	kunit_info(test, "%u pages of PROT_NONE gone, %u restored", seen.protnone,
		   seen.restored_protnone);
	KUNIT_EXPECT_LT(test, seen.batch_runs, seen.c_runs);
	KUNIT_EXPECT_GT(test, seen.gone, 0);
	KUNIT_EXPECT_GT(test, seen.kept, 0);
	KUNIT_EXPECT_GT(test, seen.partly, 0);
	KUNIT_EXPECT_GT(test, seen.prefix, 0);
	KUNIT_EXPECT_GT(test, seen.protnone, 0);
	KUNIT_EXPECT_GT(test, seen.restored_protnone, 0);
}

static struct kunit_case anon_as_c_cases[] = {
	KUNIT_CASE_PARAM(test_anon_as_c, anon_batch_gen_params),
	{}
};

static struct kunit_suite anon_as_c_suite = {
	.name = "guest_mm_batch_anon_unmap_as_c",
	.suite_init = swap_suite_init,
	.init = anon_unmap_init,
	.exit = anon_unmap_exit,
	.test_cases = anon_as_c_cases,
};

kunit_test_suite(anon_as_c_suite);
