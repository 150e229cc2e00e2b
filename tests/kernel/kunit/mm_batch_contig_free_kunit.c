// SPDX-License-Identifier: GPL-2.0
/*
 * mm_batch's paths in the running kernel: each test runs in each mode of the
 * path, on real pages, by the kernel's own interfaces.
 */

#include <kunit/test.h>
#include <linux/cma.h>
#include <linux/dma-map-ops.h>
#include <linux/gfp.h>
#include <linux/irqflags.h>
#include <linux/mm.h>
#include <linux/mm_batch.h>
#include <linux/prandom.h>
#include <linux/vmalloc.h>
#include <linux/vmstat.h>
#include "../internal.h"
#include "../page_alloc.h"
#include "mm_batch_kunit.h"

KUNIT_ARRAY_PARAM_DESC(mode, modes, name);

static unsigned long pgfree_here(void)
{
	return this_cpu_read(vm_event_states.event[PGFREE]);
}

/* Free a range; the pages that this CPU freed meanwhile. */
static unsigned long free_range(struct page *page, unsigned long nr)
{
	unsigned long flags, freed;

	local_irq_save(flags);
	freed = pgfree_here();
	__free_contig_range(page_to_pfn(page), nr);
	freed = pgfree_here() - freed;
	local_irq_restore(flags);
	return freed;
}

/* Every length and offset within a block: each page is freed, and counted, once. */
static void test_lengths(struct kunit *test)
{
	static const unsigned int lengths[] = {
		0, 1, 2, 3, 5, 16, 31, 255, 256, 511, 512,
	};
	unsigned int i, first;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		for (first = 0; first < 4; first++) {
			unsigned int nr = min(lengths[i], 512 - first);
			struct page *page = alloc_split(test, 9);

			KUNIT_EXPECT_EQ(test, free_range(page, first), first);
			KUNIT_EXPECT_EQ(test, free_range(page + first, nr), nr);
			KUNIT_EXPECT_EQ(test,
					free_range(page + first + nr, 512 - first - nr),
					512 - first - nr);
		}
	}
}

/* A page somebody else holds is not freed, and is his to free. */
static void check_held(struct kunit *test, const unsigned long *held)
{
	struct page *page = alloc_split(test, 9);
	unsigned int nr_held = bitmap_weight(held, 512);
	unsigned long flags, freed, wrong = 0;
	unsigned int i;

	for_each_set_bit(i, held, 512)
		get_page(page + i);

	local_irq_save(flags);
	freed = pgfree_here();
	__free_contig_range(page_to_pfn(page), 512);
	freed = pgfree_here() - freed;
	for (i = 0; i < 512; i++)
		wrong += page_ref_count(page + i) != test_bit(i, held);
	local_irq_restore(flags);

	KUNIT_EXPECT_EQ(test, freed, 512 - nr_held);
	KUNIT_EXPECT_EQ(test, wrong, 0);
	for_each_set_bit(i, held, 512)
		put_page(page + i);
}

static void test_held(struct kunit *test)
{
	static const unsigned int single[] = { 0, 1, 100, 255, 256, 511 };
	DECLARE_BITMAP(held, 512);
	struct rnd_state rnd;
	unsigned int i, round;

	for (i = 0; i < ARRAY_SIZE(single); i++) {
		bitmap_zero(held, 512);
		__set_bit(single[i], held);
		check_held(test, held);
	}
	bitmap_fill(held, 512);
	check_held(test, held);

	prandom_seed_state(&rnd, 7);
	for (round = 0; round < 50; round++) {
		bitmap_zero(held, 512);
		for (i = prandom_u32_state(&rnd) % 40; i; i--)
			__set_bit(prandom_u32_state(&rnd) % 512, held);
		check_held(test, held);
	}
}

/* A page whose prepare fails is leaked, alone. */
static void test_hwpoison(struct kunit *test)
{
	struct page *page = alloc_split(test, 9);
	struct page *bad = page + 77;

	if (!IS_ENABLED(CONFIG_MEMORY_FAILURE))
		kunit_skip(test, "needs CONFIG_MEMORY_FAILURE");

	SetPageHWPoison(bad);
	KUNIT_EXPECT_EQ(test, free_range(page, 512), 511);
	KUNIT_EXPECT_EQ(test, page_ref_count(bad), 0);
	KUNIT_EXPECT_FALSE(test, PageBuddy(bad));
	/* It stays that: to page_owner it is free, which would be told so twice. */
}

struct histogram {
	unsigned long nr_free[NR_PAGE_ORDERS];
	unsigned long free_pages;
};

static void snapshot(struct zone *zone, struct histogram *now)
{
	unsigned int order;

	for (order = 0; order < NR_PAGE_ORDERS; order++)
		now->nr_free[order] = zone->free_area[order].nr_free;
	now->free_pages = zone_page_state_snapshot(zone, NR_FREE_PAGES);
}

/* With per-CPU lists off: the buddy lists end as they were before the allocation. */
static void test_histogram(struct kunit *test)
{
	struct histogram before, after;
	unsigned int order, i;
	unsigned long flags;
	struct page *page;
	struct zone *zone;

	if (num_online_cpus() > 1)
		kunit_skip(test, "another CPU may allocate meanwhile: boot with one");

	page = alloc_split(test, 9);
	zone = page_zone(page);
	free_range(page, 512);
	zone_pcp_disable(zone);
	/* In the first round, hooks may allocate for themselves. */
	for (i = 0; i < 9; i++) {
		local_irq_save(flags);
		snapshot(zone, &before);
		page = alloc_pages(GFP_ATOMIC | __GFP_THISNODE, 9);
		if (page) {
			split_page(page, 9);
			get_page(page + 3 * i);
			__free_contig_range(page_to_pfn(page), 512);
			put_page(page + 3 * i);
		}
		snapshot(zone, &after);
		local_irq_restore(flags);
		if (!page || page_zone(page) != zone)
			break;
		if (i == 0)
			continue;
		for (order = 0; order < NR_PAGE_ORDERS; order++)
			KUNIT_EXPECT_EQ_MSG(test, before.nr_free[order],
					    after.nr_free[order],
					    "order %u, round %u", order, i);
		KUNIT_EXPECT_EQ(test, before.free_pages, after.free_pages);
	}
	zone_pcp_enable(zone);
	KUNIT_EXPECT_EQ(test, i, 9);
}

/* An array of pages: sorted, reversed, with gaps; each page is freed once. */
static void test_page_array(struct kunit *test)
{
	struct page **pages = kunit_kcalloc(test, 512, sizeof(*pages), GFP_KERNEL);
	unsigned int shape, i, wrong;
	struct page *page;

	KUNIT_ASSERT_NOT_NULL(test, pages);
	for (shape = 0; shape < 3; shape++) {
		page = alloc_split(test, 9);
		for (i = 0; i < 512; i++)
			pages[i] = page + (shape == 0 ? i :
					   shape == 1 ? 511 - i : (i * 7) % 512);
		/* What is held cannot be allocated by others before it is looked at. */
		for (i = 0; i < 512; i += 3)
			get_page(page + i);
		free_pages_bulk(pages, 512);
		for (wrong = 0, i = 0; i < 512; i += 3) {
			wrong += page_ref_count(page + i) != 1;
			put_page(page + i);
		}
		KUNIT_EXPECT_EQ(test, wrong, 0);
	}
	free_pages_bulk(pages, 0);
}

/* vmalloc with small and huge mappings; one page is held over the vfree(). */
static void check_vfree(struct kunit *test, void *area, unsigned long size)
{
	struct page *held;

	KUNIT_ASSERT_NOT_NULL(test, area);
	held = vmalloc_to_page(area + size / 2);
	get_page(held);
	vfree(area);
	KUNIT_EXPECT_EQ(test, page_ref_count(held), 1);
	put_page(held);
}

static void test_vfree(struct kunit *test)
{
	check_vfree(test, vmalloc(SZ_4K), SZ_4K);
	check_vfree(test, vmalloc(SZ_64K), SZ_64K);
	check_vfree(test, vmalloc(SZ_4M + SZ_16K), SZ_4M + SZ_16K);
}

static void test_vfree_huge(struct kunit *test)
{
	check_vfree(test, vmalloc_huge(SZ_2M, GFP_KERNEL), SZ_2M);
	check_vfree(test, vmalloc_huge(SZ_8M, GFP_KERNEL), SZ_8M);
}

/* Frozen ranges: CMA has as many free pages as before. */
static void test_cma(struct kunit *test)
{
	struct cma *cma = dev_get_cma_area(NULL);
	unsigned int i;

	if (!cma)
		kunit_skip(test, "needs CONFIG_DMA_CMA and cma=160M");
	for (i = 0; i < 4; i++) {
		unsigned long nr = i & 1 ? 1024 : 777;
		struct page *page = cma_alloc(cma, nr, 0, false);
		struct zone *zone;
		long before, after;

		KUNIT_ASSERT_NOT_NULL(test, page);
		zone = page_zone(page);
		drain_all_pages(zone);
		before = zone_page_state_snapshot(zone, NR_FREE_CMA_PAGES);
		KUNIT_EXPECT_TRUE(test, cma_release(cma, page, nr));
		drain_all_pages(zone);
		after = zone_page_state_snapshot(zone, NR_FREE_CMA_PAGES);
		KUNIT_EXPECT_EQ(test, after - before, nr);
	}
}

/* An injected fault: that page of the run is leaked, alone, and only by Rust. */
static void test_fault_prepare(struct kunit *test)
{
#ifdef CONFIG_FAIL_MM_BATCH
	const struct mode_param *param = test->param_value;
	static const unsigned int nths[] = { 1, 2, 100, 511, 512 };
	unsigned int i, nth;

	for (i = 0; i < ARRAY_SIZE(nths); i++) {
		struct page *page = alloc_split(test, 9);
		bool fails = param->mode == MM_BATCH_RUST;

		nth = nths[i];
		mm_batch_fail_nth(MM_BATCH_FAULT_PREPARE, nth);
		KUNIT_EXPECT_EQ(test, free_range(page, 512), 512 - fails);
		mm_batch_fail_nth(MM_BATCH_FAULT_PREPARE, 0);
		if (!fails)
			continue;

		page += nth - 1;
		KUNIT_EXPECT_EQ(test, page_ref_count(page), 0);
		KUNIT_EXPECT_FALSE(test, PageBuddy(page));
		set_page_count(page, 1);
		__free_page(page);
	}
#else
	kunit_skip(test, "needs CONFIG_FAIL_MM_BATCH: DEBUG=1");
#endif
}

static struct kunit_case contig_free_cases[] = {
	KUNIT_CASE_PARAM(test_lengths, mode_gen_params),
	KUNIT_CASE_PARAM(test_held, mode_gen_params),
	KUNIT_CASE_PARAM(test_hwpoison, mode_gen_params),
	KUNIT_CASE_PARAM(test_histogram, mode_gen_params),
	KUNIT_CASE_PARAM(test_page_array, mode_gen_params),
	KUNIT_CASE_PARAM(test_vfree, mode_gen_params),
	KUNIT_CASE_PARAM(test_vfree_huge, mode_gen_params),
	KUNIT_CASE_PARAM(test_cma, mode_gen_params),
	KUNIT_CASE_PARAM(test_fault_prepare, mode_gen_params),
	{}
};

static struct kunit_suite contig_free_suite = {
	.name = "mm_batch_contig_free",
	.init = contig_free_init,
	.exit = contig_free_exit,
	.test_cases = contig_free_cases,
};

kunit_test_suite(contig_free_suite);
