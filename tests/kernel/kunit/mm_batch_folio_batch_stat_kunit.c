// SPDX-License-Identifier: GPL-2.0
/*
 * folio_batch in the running kernel: what is counted once for several folios is what is counted
 * one by one, per node and memory cgroup, and each page keeps what is known of it alone.
 */

#include <linux/delay.h>
#include <linux/leafops.h>
#include <linux/mmzone.h>
#include "mm_batch_dirty_flush_kunit.h"
#include "mm_batch_memcg_kunit.h"

KUNIT_ARRAY_PARAM_DESC(batch_mode, batch_modes, name);

static int stat_suite_init(struct kunit_suite *suite)
{
	return swap_suite_init(suite) ?: memcg_suite_init(suite);
}

/* What reclaim changes, of the node and of each memory cgroup. */
static const struct {
	const char *name;
	enum node_stat_item item;
} items[] = {
	{ "anon mapped", NR_ANON_MAPPED },
	{ "file mapped", NR_FILE_MAPPED },
	{ "swap cache", NR_SWAPCACHE },
	{ "written", NR_VMSCAN_WRITE },
	{ "file pages", NR_FILE_PAGES },
	{ "isolated anon", NR_ISOLATED_ANON },
};

struct stats {
	long node[ARRAY_SIZE(items)];
	/* Of our cgroup, and of swap of all of them. */
	long ours[ARRAY_SIZE(items)];
	long all_swap, our_swap;
};

/* With what each CPU has not handed on, unless one does so just now. */
static long node_stat_once(enum node_stat_item item)
{
	struct pglist_data *pgdat;
	long sum = 0;
	int cpu;

	for_each_online_pgdat(pgdat) {
		sum += atomic_long_read(&pgdat->vm_stat[item]);
		for_each_online_cpu(cpu)
			sum += per_cpu_ptr(pgdat->per_cpu_nodestats, cpu)->vm_node_stat_diff[item];
	}
	return sum;
}

static long node_stat(enum node_stat_item item)
{
	long sum = node_stat_once(item), before;

	do {
		before = sum;
		sum = node_stat_once(item);
	} while (sum != before);
	return sum;
}

static struct stats read_stats(void)
{
	struct stats s = {};
	unsigned int i;

	css_rstat_flush(&root_mem_cgroup->css);
	for (i = 0; i < ARRAY_SIZE(items); i++) {
		s.node[i] = node_stat(items[i].item);
		/* A cgroup has no pages of files as such. */
		if (items[i].item == NR_FILE_PAGES || items[i].item == NR_ISOLATED_ANON)
			continue;
		s.ours[i] = memcg_page_state(memcg, items[i].item);
	}
	s.all_swap = memcg_page_state(root_mem_cgroup, MEMCG_SWAP);
	s.our_swap = memcg_page_state(memcg, MEMCG_SWAP);
	return s;
}

/* A folio that is mapped is our cgroup's from here on. */
static void charge_to_ours(struct kunit *test, struct dirty_folio *f)
{
	const enum node_stat_item item = f->file ? NR_FILE_MAPPED : NR_ANON_MAPPED;
	struct mem_cgroup *active;

	lru_add_drain();
	KUNIT_ASSERT_TRUE(test, folio_isolate_lru(f->folio));
	lruvec_stat_mod_folio(f->folio, item, -f->nr_pages);
	mem_cgroup_uncharge(f->folio);
	active = set_active_memcg(memcg);
	KUNIT_EXPECT_EQ(test, mem_cgroup_charge(f->folio, NULL, GFP_KERNEL), 0);
	set_active_memcg(active);
	lruvec_stat_mod_folio(f->folio, item, f->nr_pages);
	folio_putback_lru(f->folio);
	rcu_read_lock();
	KUNIT_EXPECT_PTR_EQ(test, folio_memcg(f->folio), memcg);
	rcu_read_unlock();
}

/*
 * All folios go to swap, of so many pages, and so many of our cgroup: what each loses and gets.
 * As what counts less than nothing reads as nothing, our cgroup has others that stay.
 */
static void expect_change(struct kunit *test, long pages, long ours, enum node_stat_item mapped)
{
	struct dirty_flush_kunit *k = test->priv;
	const unsigned int nr = k->nr;
	struct stats before, after;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		struct dirty_folio *f = map_dirty(test, ORDER, mapped == NR_FILE_MAPPED);

		charge_to_ours(test, f);
		if (f->file)
			continue;
		folio_lock(f->folio);
		KUNIT_EXPECT_EQ(test, folio_alloc_swap(f->folio), 0);
		folio_mark_dirty(f->folio);
		folio_unlock(f->folio);
	}
	before = read_stats();
	reclaim_list(test, k->folios, nr);
	after = read_stats();
	KUNIT_EXPECT_EQ(test, k->got.nr_reclaimed, pages);
	KUNIT_EXPECT_EQ(test, after.all_swap - before.all_swap, pages);
	KUNIT_EXPECT_EQ(test, after.our_swap - before.our_swap, ours);
	for (i = 0; i < ARRAY_SIZE(items); i++) {
		const enum node_stat_item item = items[i].item;
		const bool cached = item == NR_FILE_PAGES && mapped == NR_FILE_MAPPED;
		const long change = item == NR_VMSCAN_WRITE ? 1 : item == mapped || cached ? -1 : 0;

		KUNIT_EXPECT_EQ_MSG(test, after.node[i] - before.node[i], change * pages,
				    "%s", items[i].name);
		KUNIT_EXPECT_EQ_MSG(test, after.ours[i] - before.ours[i],
				    cached ? 0 : change * ours, "%s, of a cgroup", items[i].name);
	}
}

/*
 * Neighbours of two memory cgroups, small and large, to swap: what each loses and gets is its own.
 */
static void test_statistics(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;
	unsigned long pages = 0, ours = 0;
	unsigned int i;

	needs_thp_swap(test);
	k->stride = PAGE_SIZE;
	for (i = 0; i < 24; i++)
		map_dirty(test, 0, false);
	k->stride = 0;
	for (i = 0; i < 4; i++)
		map_dirty(test, ORDER, false);
	for (i = 0; i < k->nr; i++) {
		pages += k->folios[i].nr_pages;
		/* Some are neighbours of their own kind. */
		if (i % 5 < 3)
			continue;
		charge_to_ours(test, &k->folios[i]);
		ours += k->folios[i].nr_pages;
	}
	expect_change(test, pages, ours, NR_ANON_MAPPED);
	unmap_dirty(test);
}

/* Of shmem, of which pages are in two memory cgroups. */
static void test_file_statistics(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;
	unsigned int i, ours = 0;

	for (i = 0; i < 12; i++) {
		map_dirty(test, 0, true);
		if (i % 3 != 1)
			continue;
		charge_to_ours(test, &k->folios[i]);
		ours++;
	}
	expect_change(test, k->nr, ours, NR_FILE_MAPPED);
	unmap_dirty(test);
}

/* The limit of a cgroup is met within a batch: so many go as without batches, and no more count. */
static void test_swap_limit(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;
	const unsigned int nr = 20, room = 7;
	struct stats before, after;
	unsigned int i, gone = 0;
	unsigned long limit;

	k->stride = PAGE_SIZE;
	for (i = 0; i < nr; i++) {
		map_dirty(test, 0, false);
		charge_to_ours(test, &k->folios[i]);
	}
	limit = memcg->swap.max;
	page_counter_set_max(&memcg->swap, page_counter_read(&memcg->swap) + room);
	before = read_stats();
	reclaim_list(test, k->folios, nr);
	after = read_stats();
	page_counter_set_max(&memcg->swap, limit);
	KUNIT_EXPECT_EQ(test, k->got.nr_reclaimed, room);
	KUNIT_EXPECT_EQ(test, after.our_swap - before.our_swap, room);
	for (i = 0; i < nr; i++) {
		gone += k->folios[i].freed;
		KUNIT_EXPECT_NE_MSG(test, k->folios[i].freed, folio_mapped(k->folios[i].folio),
				    "folio %u", i);
	}
	KUNIT_EXPECT_EQ(test, gone, room);
	unmap_dirty(test);
}

/* What is known of a page by its PTE. */
struct bits {
	bool exclusive, soft_dirty, uffd;
};

static pte_t set_bits_of(struct kunit *test, const struct dirty_folio *f, struct bits bits)
{
	spinlock_t *ptl; /* the page table's */
	pte_t *ptep, pte;

	ptep = get_locked_pte(current->mm, f->addr, &ptl);
	KUNIT_ASSERT_NOT_NULL(test, ptep);
	pte = ptep_get_and_clear(current->mm, f->addr, ptep);
	pte = bits.soft_dirty ? pte_mksoft_dirty(pte) : pte_clear_soft_dirty(pte);
	if (!bits.exclusive) {
		pte = pte_wrprotect(pte);
		ClearPageAnonExclusive(folio_page(f->folio, 0));
	}
	if (bits.uffd)
		pte = pte_mkuffd(pte_wrprotect(pte));
	set_pte_at(current->mm, f->addr, ptep, pte);
	pte_unmap_unlock(ptep, ptl);
	flush_tlb_mm(current->mm);
	return pte;
}

/* Neighbours that differ in all that a PTE says of a page: its entry says the same. */
static void test_entries(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;
	const unsigned int nr = 16;
	struct bits bits[16];
	unsigned int i;

	k->stride = PAGE_SIZE;
	for (i = 0; i < nr; i++) {
		pte_t pte;

		map_dirty(test, 0, false);
		bits[i] = (struct bits) {
			.exclusive = i & 1, .soft_dirty = i & 2, .uffd = i & 4,
		};
		pte = set_bits_of(test, &k->folios[i], bits[i]);
		/* Where there is no such bit, none is kept. */
		bits[i].soft_dirty = pte_soft_dirty(pte);
		bits[i].uffd = pte_uffd(pte);
	}
	reclaim_list(test, k->folios, nr);
	KUNIT_EXPECT_EQ(test, k->got.nr_reclaimed, nr);
	for (i = 0; i < nr; i++) {
		spinlock_t *ptl; /* the page table's */
		pte_t *ptep, pte;

		ptep = get_locked_pte(current->mm, k->folios[i].addr, &ptl);
		KUNIT_ASSERT_NOT_NULL(test, ptep);
		pte = ptep_get(ptep);
		pte_unmap_unlock(ptep, ptl);
		KUNIT_ASSERT_TRUE_MSG(test, !pte_none(pte) && !pte_present(pte), "page %u", i);
		KUNIT_ASSERT_TRUE_MSG(test, softleaf_is_swap(softleaf_from_pte(pte)), "page %u", i);
		KUNIT_EXPECT_EQ_MSG(test, !!pte_swp_exclusive(pte), bits[i].exclusive, "page %u",
				    i);
		KUNIT_EXPECT_EQ_MSG(test, !!pte_swp_soft_dirty(pte), bits[i].soft_dirty,
				    "page %u", i);
		KUNIT_EXPECT_EQ_MSG(test, !!pte_swp_uffd(pte), bits[i].uffd, "page %u", i);
		/* When it was evicted. Where that is not noted there is a shadow of nothing. */
		KUNIT_EXPECT_NE_MSG(test,
				    xa_to_value(swap_cache_get_shadow(softleaf_from_pte(pte))), 0,
				    "page %u", i);
	}
	unmap_dirty(test);
}

/*
 * mlock() has come, and has not come by the pages yet: they stay, and do not go to swap later.
 */
static void test_locked_vma(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;
	struct vm_area_struct *vma;
	const unsigned int nr = 6;
	unsigned int i;

	map_neighbours(test, nr);
	vma = vma_lookup(current->mm, k->folios[0].addr);
	mmap_write_lock(current->mm);
	vma_start_write(vma);
	vm_flags_set(vma, VM_LOCKED);
	mmap_write_unlock(current->mm);
	reclaim_list(test, k->folios, nr);
	KUNIT_EXPECT_EQ(test, k->got.nr_reclaimed, 0);
	for (i = 0; i < nr; i++) {
		KUNIT_EXPECT_TRUE_MSG(test, folio_mapped(k->folios[i].folio), "folio %u", i);
		KUNIT_EXPECT_TRUE_MSG(test, folio_test_mlocked(k->folios[i].folio), "folio %u", i);
	}
	unmap_dirty(test);
}

/* Of lazyfree neighbours somebody has one, as GUP does: that one stays. */
static void test_lazyfree_held(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;
	struct dirty_folio *f;
	unsigned int i;

	k->stride = PAGE_SIZE;
	for (i = 0; i < 8; i++)
		map_lazyfree(test, 0);
	f = &k->folios[5];
	folio_get(f->folio);
	reclaim_list(test, k->folios, k->nr);
	KUNIT_EXPECT_EQ(test, k->got.nr_reclaimed, k->nr - 1);
	KUNIT_EXPECT_TRUE(test, folio_mapped(f->folio));
	folio_put(f->folio);
	for (i = 0; i < k->nr; i++)
		expect_dirty_content(test, &k->folios[i], &k->folios[i] != f);
	unmap_dirty(test);
}

/* Who touches a page whenever its notifier is told that it will be unmapped. */
struct toucher {
	struct mmu_notifier notifier;
	struct task_struct *task;
	unsigned long addr;
	unsigned int nr;
};

static int touch_page(struct mmu_notifier *notifier, const struct mmu_notifier_range *range)
{
	struct toucher *toucher = container_of(notifier, struct toucher, notifier);
	const unsigned long addr = toucher->addr;
	spinlock_t *ptl; /* the page table's */
	pte_t *ptep;

	if (current != toucher->task || addr < range->start || addr >= range->end)
		return 0;
	ptep = get_locked_pte(range->mm, addr, &ptl);
	if (!ptep)
		return 0;
	/* arm64 warns if a PTE that is valid becomes young otherwise than by a fault. */
	set_pte_at(range->mm, addr, ptep, pte_mkyoung(ptep_get_and_clear(range->mm, addr, ptep)));
	pte_unmap_unlock(ptep, ptl);
	toucher->nr++;
	return 0;
}

static const struct mmu_notifier_ops toucher_ops = {
	.invalidate_range_start = touch_page,
};

/*
 * One that is touched when it has slots already is kept, and activated the next time, without
 * them: one by one, references are asked for before there are any, and not behind that.
 */
static void test_touched(struct kunit *test)
{
	struct toucher *toucher = kunit_kzalloc(test, sizeof(*toucher), GFP_KERNEL);
	const struct mode_param *param = test->param_value;
	const unsigned int nr = 10, stays = param->mode != MM_BATCH_OFF;
	const unsigned int touched = stays ? 3 : 1;
	const unsigned long before = page_counter_read(&memcg->swap);
	struct dirty_flush_kunit *k = test->priv;
	int swappiness = SWAPPINESS_ANON_ONLY;
	unsigned int i, mapped = nr;
	struct dirty_folio *f;

	KUNIT_ASSERT_NOT_NULL(test, toucher);
	k->stride = PAGE_SIZE;
	for (i = 0; i < nr; i++) {
		map_dirty(test, 0, false);
		charge_to_ours(test, &k->folios[i]);
	}
	f = &k->folios[4];
	toucher->task = current;
	toucher->addr = f->addr;
	toucher->notifier.ops = &toucher_ops;
	KUNIT_ASSERT_EQ(test, mmu_notifier_register(&toucher->notifier, current->mm), 0);
	for (i = 0; i < 500 && (mapped > stays || toucher->nr < touched); i++) {
		lru_add_drain_all();
		/*
		 * Of all cgroups, as that of one asks for no references of others' tasks. The
		 * guest's tasks have pages as well, of which there must be less.
		 */
		try_to_free_mem_cgroup_pages(root_mem_cgroup, SZ_4M / PAGE_SIZE, GFP_KERNEL,
					     MEMCG_RECLAIM_MAY_SWAP | MEMCG_RECLAIM_PROACTIVE,
					     &swappiness);
		mapped = rss(current->mm, MM_ANONPAGES);
		/*
		 * too_many_isolated() goes by what the CPUs have handed on of their counts, once
		 * a second. Until then it may take too many for isolated; reclaim looks at none.
		 */
		msleep(20);
	}
	mmu_notifier_unregister(&toucher->notifier, current->mm);

	KUNIT_EXPECT_GE(test, toucher->nr, touched);
	KUNIT_EXPECT_EQ(test, rss(current->mm, MM_ANONPAGES), stays);
	KUNIT_EXPECT_EQ(test, page_counter_read(&memcg->swap) - before, nr - stays);
	/* The tasks of the guest have pages there now. */
	k->free_slots = get_nr_swap_pages() + page_counter_read(&memcg->swap) - before;
	expect_contents(test);
	unmap_dirty(test);
}

static struct kunit_case folio_batch_stat_cases[] = {
	KUNIT_CASE_PARAM(test_statistics, batch_mode_gen_params),
	KUNIT_CASE_PARAM(test_file_statistics, batch_mode_gen_params),
	KUNIT_CASE_PARAM(test_swap_limit, batch_mode_gen_params),
	KUNIT_CASE_PARAM(test_entries, batch_mode_gen_params),
	KUNIT_CASE_PARAM(test_locked_vma, batch_mode_gen_params),
	KUNIT_CASE_PARAM(test_lazyfree_held, batch_mode_gen_params),
	KUNIT_CASE_PARAM(test_touched, batch_mode_gen_params),
	{}
};

static struct kunit_suite folio_batch_stat_suite = {
	.name = "guest_mm_batch_folio_batch_stat",
	.suite_init = stat_suite_init,
	.suite_exit = memcg_suite_exit,
	.init = folio_batch_begin,
	.exit = dirty_flush_exit,
	.test_cases = folio_batch_stat_cases,
};

kunit_test_suite(folio_batch_stat_suite);
