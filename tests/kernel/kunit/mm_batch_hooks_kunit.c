// SPDX-License-Identifier: GPL-2.0
/*
 * Each hook of __free_pages_prepare() sees each page of a range, in each mode of
 * contig_free, counted and frozen, while it is on. A hook that is off skips its
 * case; the boots that have it on say which cases may be skipped.
 */

#include <linux/kasan.h>
#include <linux/kprobes.h>
#include <linux/page_ext.h>
#include <linux/page_owner.h>
#include <linux/page_table_check.h>
#include <linux/pgalloc_tag.h>
#include <linux/poison.h>
#include <linux/ptrace.h>
#include <linux/set_memory.h>
#include <linux/stacktrace.h>
#include <trace/events/kmem.h>
#include "../internal.h"
#include "mm_batch_kunit.h"

#ifdef CONFIG_KASAN_GENERIC
#include "../kasan/kasan.h"
#endif

#define RANGE_ORDER	9
#define RANGE_PAGES	BIT(RANGE_ORDER)

struct free_param {
	struct mode_param mode;
	bool frozen;
};

static const struct free_param frees[] = {
	{ { "off", MM_BATCH_OFF } },
	{ { "c", MM_BATCH_C } },
	{ { "rust", MM_BATCH_RUST } },
#ifdef CONFIG_CONTIG_ALLOC
	{ { "off, frozen", MM_BATCH_OFF }, true },
	{ { "c, frozen", MM_BATCH_C }, true },
	{ { "rust, frozen", MM_BATCH_RUST }, true },
#endif
};

KUNIT_ARRAY_PARAM_DESC(free, frees, mode.name);

/* What a hook that leaves no trace in the page was called for. */
static struct page *watched;
static DECLARE_BITMAP(called_for, RANGE_PAGES);

static void note_call(struct page *page, unsigned int order)
{
	if (page >= watched && page < watched + RANGE_PAGES)
		bitmap_set(called_for, page - watched, 1U << order);
}

static bool was_called_for(struct page *page)
{
	return test_bit(page - watched, called_for);
}

/* Free memory, which KASAN must not mind being looked at. */
static __no_sanitize_address bool filled_with(struct page *page, u64 value)
{
	const u64 *word = page_address(page);
	unsigned int i;

	for (i = 0; i < PAGE_SIZE / sizeof(*word); i++)
		if (READ_ONCE(word[i]) != value)
			return false;
	return true;
}

static void free_range(struct page *page, bool frozen)
{
	if (!frozen)
		__free_contig_range(page_to_pfn(page), RANGE_PAGES);
#ifdef CONFIG_CONTIG_ALLOC
	else
		free_contig_frozen_range(page_to_pfn(page), RANGE_PAGES);
#endif
}

/*
 * No page was seen before the range is freed, and each is right after. It is
 * filled with what no hook writes: fresh pages may hold what one wrote before.
 */
static void check_hook(struct kunit *test, bool (*seen)(struct page *page))
{
	const struct free_param *param = test->param_value;
	unsigned int i, before = 0, after = 0;
	unsigned long flags;
	struct page *page;

	if (num_online_cpus() > 1)
		kunit_skip(test, "another CPU may allocate meanwhile: boot with one");

	page = alloc_split(test, RANGE_ORDER);
	memset(page_address(page), 0x5a, RANGE_PAGES * PAGE_SIZE);
	watched = page;
	bitmap_zero(called_for, RANGE_PAGES);
	for (i = 0; i < RANGE_PAGES; i++) {
		/* What preparing a page is to reset. */
		page[i].private = 1;
		folio_xchg_last_cpupid(page_folio(page + i), 1);
		SetPageReclaim(page + i);
		if (param->frozen)
			KUNIT_ASSERT_TRUE(test, page_ref_freeze(page + i, 1));
	}

	local_irq_save(flags);
	for (i = 0; i < RANGE_PAGES; i++)
		before += seen(page + i);
	free_range(page, param->frozen);
	for (i = 0; i < RANGE_PAGES; i++)
		after += seen(page + i);
	local_irq_restore(flags);

	KUNIT_EXPECT_EQ(test, before, 0);
	KUNIT_EXPECT_EQ(test, after, RANGE_PAGES);
}

/* What is done in any case. A buddy's first page has its order in private. */
static bool is_reset(struct page *page)
{
	return !(page->flags.f & PAGE_FLAGS_CHECK_AT_PREP) &&
	       folio_last_cpupid(page_folio(page)) == (-1 & LAST_CPUPID_MASK) &&
	       (!page->private || PageBuddy(page));
}

static void test_page_reset(struct kunit *test)
{
	check_hook(test, is_reset);
}

static void probe_mm_page_free(void *data, struct page *page, unsigned int order)
{
	note_call(page, order);
}

static void test_trace_mm_page_free(struct kunit *test)
{
	if (!IS_ENABLED(CONFIG_TRACEPOINTS))
		kunit_skip(test, "needs CONFIG_TRACEPOINTS");
	KUNIT_ASSERT_EQ(test, register_trace_mm_page_free(probe_mm_page_free, NULL), 0);
	check_hook(test, was_called_for);
	unregister_trace_mm_page_free(probe_mm_page_free, NULL);
	tracepoint_synchronize_unregister();
}

#ifdef CONFIG_PAGE_OWNER
static bool has_no_owner(struct page *page)
{
	struct page_ext *page_ext = page_ext_get(page);
	bool owned = test_bit(PAGE_EXT_OWNER_ALLOCATED, &page_ext->flags);

	page_ext_put(page_ext);
	return !owned;
}
#endif

static void test_page_owner(struct kunit *test)
{
#ifdef CONFIG_PAGE_OWNER
	unsigned long caller;

	if (static_branch_unlikely(&page_owner_inited)) {
		/* Without a stack trace a page stays owned. */
		if (!stack_trace_save(&caller, 1, 0))
			kunit_skip(test, "needs stack traces");
		check_hook(test, has_no_owner);
		return;
	}
#endif
	kunit_skip(test, "needs CONFIG_PAGE_OWNER and page_owner=on");
}

/* Of the function that is probed. An architecture without kprobes may not tell. */
static unsigned long argument(struct pt_regs *regs, unsigned int nr)
{
#ifdef CONFIG_KPROBES
	return regs_get_kernel_argument(regs, nr);
#else
	return 0;
#endif
}

/* A hook that is told where memory begins, and its length. */
static int probe_memory(struct kprobe *probe, struct pt_regs *regs)
{
	note_call(virt_to_page((void *)argument(regs, 0)), get_order(argument(regs, 1)));
	return 0;
}

static void check_called(struct kunit *test, const char *function, kprobe_pre_handler_t note)
{
	struct kprobe probe = { .symbol_name = function, .pre_handler = note };

	if (!IS_ENABLED(CONFIG_KPROBES))
		kunit_skip(test, "needs CONFIG_KPROBES");
	KUNIT_ASSERT_EQ(test, register_kprobe(&probe), 0);
	check_hook(test, was_called_for);
	unregister_kprobe(&probe);
}

#ifdef CONFIG_PAGE_TABLE_CHECK
/* A hook that is told a page and an order. */
static int probe_page(struct kprobe *probe, struct pt_regs *regs)
{
	note_call((struct page *)argument(regs, 0), argument(regs, 1));
	return 0;
}
#endif

static void test_page_table_check(struct kunit *test)
{
#ifdef CONFIG_PAGE_TABLE_CHECK
	if (!static_branch_likely(&page_table_check_disabled)) {
		check_called(test, "__page_table_check_zero", probe_page);
		return;
	}
#endif
	kunit_skip(test, "needs CONFIG_PAGE_TABLE_CHECK and page_table_check=on");
}

#ifdef CONFIG_MEM_ALLOC_PROFILING
static bool has_no_tag(struct page *page)
{
	return !pgalloc_tag_get(page);
}
#endif

static void test_alloc_tag(struct kunit *test)
{
#ifdef CONFIG_MEM_ALLOC_PROFILING
	if (mem_alloc_profiling_enabled()) {
		check_hook(test, has_no_tag);
		return;
	}
#endif
	kunit_skip(test, "needs CONFIG_MEM_ALLOC_PROFILING, on");
}

static void test_no_locks(struct kunit *test)
{
	if (!IS_ENABLED(CONFIG_LOCKDEP))
		kunit_skip(test, "needs CONFIG_LOCKDEP");
	check_called(test, "debug_check_no_locks_freed", probe_memory);
}

static void test_no_objects(struct kunit *test)
{
	if (!IS_ENABLED(CONFIG_DEBUG_OBJECTS_FREE))
		kunit_skip(test, "needs CONFIG_DEBUG_OBJECTS_FREE");
	check_called(test, "debug_check_no_obj_freed", probe_memory);
}

static bool is_poisoned(struct page *page)
{
	return filled_with(page, PAGE_POISON * 0x0101010101010101ULL);
}

static void test_page_poison(struct kunit *test)
{
	if (!page_poisoning_enabled_static())
		kunit_skip(test, "needs CONFIG_PAGE_POISONING and page_poison=1");
	check_hook(test, is_poisoned);
}

static bool is_zero(struct page *page)
{
	return filled_with(page, 0);
}

static void test_init_on_free(struct kunit *test)
{
	if (!want_init_on_free())
		kunit_skip(test, "needs init_on_free=1, without page_poison=1");
	check_hook(test, is_zero);
}

#ifdef CONFIG_KASAN_GENERIC
static __no_sanitize_address bool is_inaccessible(struct page *page)
{
	const u8 *shadow = kasan_mem_to_shadow(page_address(page));
	unsigned int i;

	for (i = 0; i < PAGE_SIZE / KASAN_GRANULE_SIZE; i++)
		if (READ_ONCE(shadow[i]) != KASAN_PAGE_FREE)
			return false;
	return true;
}
#endif

static void test_kasan(struct kunit *test)
{
#ifdef CONFIG_KASAN_GENERIC
	check_hook(test, is_inaccessible);
#else
	kunit_skip(test, "needs CONFIG_KASAN_GENERIC");
#endif
}

static bool is_unmapped(struct page *page)
{
	return !kernel_page_present(page);
}

static void test_direct_map(struct kunit *test)
{
	/* Elsewhere, it poisons pages and unmaps none. */
	if (!IS_ENABLED(CONFIG_ARCH_SUPPORTS_DEBUG_PAGEALLOC) || !debug_pagealloc_enabled_static())
		kunit_skip(test, "needs CONFIG_DEBUG_PAGEALLOC and debug_pagealloc=on");
	check_hook(test, is_unmapped);
}

static struct kunit_case hooks_cases[] = {
	KUNIT_CASE_PARAM(test_page_reset, free_gen_params),
	KUNIT_CASE_PARAM(test_trace_mm_page_free, free_gen_params),
	KUNIT_CASE_PARAM(test_page_owner, free_gen_params),
	KUNIT_CASE_PARAM(test_page_table_check, free_gen_params),
	KUNIT_CASE_PARAM(test_alloc_tag, free_gen_params),
	KUNIT_CASE_PARAM(test_no_locks, free_gen_params),
	KUNIT_CASE_PARAM(test_no_objects, free_gen_params),
	KUNIT_CASE_PARAM(test_page_poison, free_gen_params),
	KUNIT_CASE_PARAM(test_init_on_free, free_gen_params),
	KUNIT_CASE_PARAM(test_kasan, free_gen_params),
	KUNIT_CASE_PARAM(test_direct_map, free_gen_params),
	{}
};

static struct kunit_suite hooks_suite = {
	.name = "mm_batch_hooks",
	.init = contig_free_init,
	.exit = contig_free_exit,
	.test_cases = hooks_cases,
};

kunit_test_suite(hooks_suite);
