// SPDX-License-Identifier: GPL-2.0
/*
 * What needs a user space that has set things up: a swap device, folio sizes and
 * the cgroup /mm_batch. Its name keeps it out of what runs at boot; it is started
 * from debugfs (kunit/guest_mm_batch/run), and fails where something is missing.
 */

#include <linux/sched/mm.h>
#include <linux/swap.h>
#include "../internal.h"
#include "mm_batch_kunit.h"
#include "mm_batch_memcg_kunit.h"

KUNIT_ARRAY_PARAM_DESC(mode, modes, name);

static int guest_suite_init(struct kunit_suite *suite)
{
	if (!total_swap_pages) {
		kunit_err(suite, "no swap: swapon a device first");
		return -ENODEV;
	}
	if (!(READ_ONCE(huge_anon_orders_always) & BIT(4))) {
		kunit_err(suite, "hugepages-64kB/enabled is not \"always\"");
		return -ENODEV;
	}
	return memcg_suite_init(suite);
}

/* Each page is charged before, and none is after; so is the cgroup's counter. */
static void test_memcg_kmem(struct kunit *test)
{
	struct mem_cgroup *active = set_active_memcg(memcg);
	struct page *page = alloc_split_gfp(test, 9, GFP_KERNEL_ACCOUNT);
	unsigned long flags, before, after;
	unsigned int i, charged = 0, left = 0;

	set_active_memcg(active);
	before = page_counter_read(&memcg->memory);
	local_irq_save(flags);
	for (i = 0; i < 512; i++)
		charged += PageMemcgKmem(page + i);
	__free_contig_range(page_to_pfn(page), 512);
	for (i = 0; i < 512; i++)
		left += page[i].memcg_data != 0;
	local_irq_restore(flags);
	after = page_counter_read(&memcg->memory);

	KUNIT_EXPECT_EQ(test, charged, 512);
	KUNIT_EXPECT_EQ(test, left, 0);
	/* A CPU may keep one batch of the charge for what comes next. */
	KUNIT_EXPECT_GE(test, before - after, 512 - MEMCG_CHARGE_BATCH);
	KUNIT_EXPECT_LE(test, before - after, 512 + MEMCG_CHARGE_BATCH);
}

static struct kunit_case guest_cases[] = {
	KUNIT_CASE_PARAM(test_memcg_kmem, mode_gen_params),
	{}
};

static struct kunit_suite guest_suite = {
	.name = "guest_mm_batch",
	.suite_init = guest_suite_init,
	.suite_exit = memcg_suite_exit,
	.init = contig_free_init,
	.exit = contig_free_exit,
	.test_cases = guest_cases,
};

kunit_test_suite(guest_suite);
