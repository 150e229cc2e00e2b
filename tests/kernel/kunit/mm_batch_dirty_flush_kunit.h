/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_BATCH_DIRTY_FLUSH_KUNIT_H
#define _MM_BATCH_DIRTY_FLUSH_KUNIT_H
/*
 * For the suites of dirty_flush: dirty folios that a real mm maps, and what reclaim makes of a
 * list of them. It has the list as MADV_PAGEOUT gives it one, by reclaim_pages().
 */

#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/sched.h>
#include <linux/swap_ops.h>
#include <linux/vmstat.h>
#include <trace/events/kmem.h>
#include <trace/events/mm_batch.h>
#include <trace/events/tlb.h>
#include <trace/events/vmscan.h>
#include "mm_batch_kunit.h"
#include "mm_batch_other_cpu_kunit.h"
#include "mm_batch_swap_kunit.h"

#define MAX_DIRTY	112	/* folios of a list */
#define FULL_BATCH	31	/* folios of a batch */
#define BATCH_PAGES	512	/* of a batch, unless one folio has more */

/* Where they do not, they are flushed for before they are unlocked; who waits is so with them. */
#define LARGE_FOLIOS_WAIT	(!IS_ENABLED(CONFIG_ARM64_CONTPTE))

/* A folio that is mapped at @addr. The test holds no reference. */
struct dirty_folio {
	struct folio *folio;
	struct file *file;		/* of shmem, whose only folio it is */
	unsigned long addr;
	unsigned int nr_pages;
	unsigned long salt;		/* of what its pages have in them */
	bool freed;
};

/* What became of a list. */
struct reclaimed {
	unsigned long nr_reclaimed, nr_scanned, nr_swapped; /* pages */
	struct reclaim_stat stat;
	unsigned int nr_written;
	struct folio *written[MAX_DIRTY];
	unsigned int nr_batches;
	unsigned long batches[MAX_DIRTY]; /* their pages */
	unsigned int nr_windows;
	bool pending[MAX_DIRTY];	/* a flush for a dirty PTE, before it is done */
	bool pending_after;		/* any flush */
	bool pending_at_write;		/* one for a dirty PTE */
	bool pending_at_free;		/* any */
	unsigned int nr_ipis;		/* flushes of the other CPU: x86 */
};

struct dirty_flush_kunit {
	struct task_struct *task;	/* the test's */
	bool reclaims;			/* it is in reclaim_pages() */
	struct other_cpu other;
	struct task_struct *on_other;
	/* Called in the first window, in which a batch waits. Must not abort the test. */
	void (*in_window)(struct kunit *test);
	unsigned int nr;
	struct dirty_folio folios[MAX_DIRTY];
	struct reclaimed got;
	long free_slots;
	unsigned long huge_orders;
	enum mm_batch_mode mode_before;
};

/* A batch in C is a build's. */
static const struct mode_param flush_modes[] __maybe_unused = {
	{ "off", MM_BATCH_OFF },
#ifdef MM_BATCH_DIRTY_FLUSH_C
	{ "c", MM_BATCH_C },
#endif
	{ "rust", MM_BATCH_RUST },
};

static struct kunit *dirty_flush_test;

static void note_batch(void *data, enum mm_batch_run_path path, unsigned long nr_pages,
		       enum mm_batch_run_outcome outcome)
{
	struct dirty_flush_kunit *k = data;

	if (current != k->task || !k->reclaims || path != MM_BATCH_RUN_DIRTY_FLUSH ||
	    outcome != MM_BATCH_RUN_DONE || k->got.nr_batches == MAX_DIRTY)
		return;
	k->got.batches[k->got.nr_batches++] = nr_pages;
}

static void note_write(void *data, struct folio *folio)
{
	struct dirty_flush_kunit *k = data;

	if (current != k->task || !k->reclaims)
		return;
	k->got.pending_at_write |= current->tlb_ubc.writable;
	if (k->got.nr_written < MAX_DIRTY)
		k->got.written[k->got.nr_written++] = folio;
}

static void note_stat(void *data, int nid, unsigned long nr_scanned, unsigned long nr_reclaimed,
		      struct reclaim_stat *stat)
{
	struct dirty_flush_kunit *k = data;

	if (current != k->task || !k->reclaims)
		return;
	k->got.nr_scanned = nr_scanned;
	k->got.stat = *stat;
}

static void note_free(void *data, struct page *page, unsigned int order)
{
	struct dirty_flush_kunit *k = data;
	unsigned int i;

	if (current != k->task)
		return;
	for (i = 0; i < k->nr; i++) {
		if (page != &k->folios[i].folio->page)
			continue;
		k->folios[i].freed = true;
		k->got.pending_at_free |= k->reclaims && current->tlb_ubc.flush_required;
	}
}

static void note_ipi(void *data, int reason, unsigned long pages)
{
	struct dirty_flush_kunit *k = data;

	if (current == k->task && k->reclaims && reason == TLB_REMOTE_SEND_IPI)
		k->got.nr_ipis++;
}

static void dirty_flush_window(void)
{
	struct kunit *test = READ_ONCE(dirty_flush_test);
	struct dirty_flush_kunit *k = test->priv;

	/* Others may reclaim, too. */
	if (current != k->task || !k->reclaims || k->got.nr_windows == MAX_DIRTY)
		return;
	k->got.pending[k->got.nr_windows] = current->tlb_ubc.writable;
	if (!k->got.nr_windows++ && k->in_window)
		k->in_window(test);
}

static inline int dirty_flush_begin(struct kunit *test, enum mm_batch_mode mode)
{
	struct dirty_flush_kunit *k = kunit_kzalloc(test, sizeof(*k), GFP_KERNEL);
	int error = k ? 0 : -ENOMEM;

	/* The mm is on no other CPU unless the test has it there. */
	error = error ?: set_cpus_allowed_ptr(current, cpumask_of(raw_smp_processor_id()));
	error = error ?: kunit_attach_mm();
	error = error ?: register_trace_mm_batch_run(note_batch, k);
	error = error ?: register_trace_mm_vmscan_write_folio(note_write, k);
	error = error ?: register_trace_mm_vmscan_reclaim_pages(note_stat, k);
	error = error ?: register_trace_mm_page_free(note_free, k);
	/* Nobody else has the event. */
	if (IS_ENABLED(CONFIG_X86))
		error = error ?: register_trace_tlb_flush(note_ipi, k);
	if (error)
		return error;
	k->task = current;
	k->free_slots = get_nr_swap_pages();
	k->huge_orders = READ_ONCE(huge_anon_orders_always);
	k->mode_before = mm_batch_dirty_flush_mode();
	test->priv = k;
	WRITE_ONCE(dirty_flush_test, test);
	WRITE_ONCE(mm_batch_dirty_flush_window, dirty_flush_window);
	mm_batch_dirty_flush_set_mode(mode);
	return 0;
}

/* Also where a test was aborted, or has not begun. */
static inline void dirty_flush_exit(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;

	if (!k)
		return;
	if (k->on_other)
		kthread_stop(k->on_other);
	mm_batch_dirty_flush_set_mode(k->mode_before);
	WRITE_ONCE(huge_anon_orders_always, k->huge_orders);
	WRITE_ONCE(mm_batch_dirty_flush_window, NULL);
	if (IS_ENABLED(CONFIG_X86))
		unregister_trace_tlb_flush(note_ipi, k);
	unregister_trace_mm_page_free(note_free, k);
	unregister_trace_mm_vmscan_reclaim_pages(note_stat, k);
	unregister_trace_mm_vmscan_write_folio(note_write, k);
	unregister_trace_mm_batch_run(note_batch, k);
	tracepoint_synchronize_unregister();
}

/* Another CPU has the mm from here on, so that flushes are put off. */
static inline void have_other_cpu(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;

	k->other.mm = current->mm;
	k->on_other = on_other_cpu(test, &k->other);
}

/* What page @i of a folio has in it. */
static inline unsigned long dirty_content(const struct dirty_folio *f, unsigned int i)
{
	return content(i) + f->salt;
}

static inline void write_dirty(struct kunit *test, struct dirty_folio *f, unsigned long salt)
{
	unsigned int i;

	f->salt = salt;
	for (i = 0; i < f->nr_pages; i++) {
		unsigned long __user *at = (void __user *)(f->addr + i * PAGE_SIZE);

		KUNIT_EXPECT_EQ(test, put_user(dirty_content(f, i), at), 0);
	}
}

/* Faults in what is swapped. Of what was taken away there is nothing: it is zero. */
static inline void expect_dirty_content(struct kunit *test, const struct dirty_folio *f, bool taken)
{
	unsigned int i;

	for (i = 0; i < f->nr_pages; i++) {
		unsigned long __user *at = (void __user *)(f->addr + i * PAGE_SIZE);
		unsigned long found = ~0ul;

		KUNIT_EXPECT_EQ(test, get_user(found, at), 0);
		KUNIT_EXPECT_EQ_MSG(test, found, taken ? 0 : dirty_content(f, i), "page %u", i);
	}
}

/*
 * One folio more, of which the first pages are mapped, and its file has no others. Each
 * is mapped by a page table of its own.
 */
static inline struct dirty_folio *map_some_dirty(struct kunit *test, unsigned int nr_pages,
						 unsigned int order, bool shmem)
{
	struct dirty_flush_kunit *k = test->priv;
	struct dirty_folio *f = &k->folios[k->nr];
	unsigned long length = PAGE_SIZE << order;
	struct page *page;

	KUNIT_ASSERT_LT(test, k->nr, MAX_DIRTY);
	*f = (struct dirty_folio) { .addr = SZ_1G + k->nr * PMD_SIZE, .nr_pages = nr_pages };
	if (shmem) {
		f->file = shmem_kernel_file_setup("mm_batch", nr_pages * PAGE_SIZE,
						  EMPTY_VMA_FLAGS);
		KUNIT_ASSERT_FALSE(test, IS_ERR(f->file));
	}
	KUNIT_ASSERT_EQ(test, vm_mmap(f->file, f->addr, length, PROT_READ | PROT_WRITE,
				      MAP_FIXED | MAP_NORESERVE |
				      (shmem ? MAP_SHARED : MAP_PRIVATE), 0), f->addr);
	if (order && !shmem)
		WRITE_ONCE(huge_anon_orders_always, k->huge_orders | BIT(order));
	write_dirty(test, f, k->nr << 16);
	WRITE_ONCE(huge_anon_orders_always, k->huge_orders);
	KUNIT_ASSERT_EQ(test, get_user_pages_fast(f->addr, 1, 0, &page), 1);
	f->folio = page_folio(page);
	folio_put(f->folio);
	KUNIT_ASSERT_EQ_MSG(test, folio_order(f->folio), order,
			    "boot with thp_shmem=64K:always");
	k->nr++;
	return f;
}

static inline struct dirty_folio *map_dirty(struct kunit *test, unsigned int order, bool shmem)
{
	return map_some_dirty(test, 1 << order, order, shmem);
}

/* Clean, as MADV_FREE makes it. */
static inline struct dirty_folio *map_lazyfree(struct kunit *test, unsigned int order)
{
	struct dirty_folio *f = map_dirty(test, order, false);

	lru_add_drain();
	KUNIT_EXPECT_EQ(test, do_madvise(current->mm, f->addr, PAGE_SIZE << order, MADV_FREE), 0);
	lru_add_drain();
	KUNIT_EXPECT_TRUE(test, folio_test_lazyfree(f->folio));
	return f;
}

static inline void map_many_dirty(struct kunit *test, unsigned int nr, unsigned int order,
				  bool shmem)
{
	while (nr--)
		map_dirty(test, order, shmem);
}

/* MGLRU has a generation instead of the flag. */
static inline void expect_active(struct kunit *test, const struct folio *folio, bool active)
{
	if (!lru_gen_enabled())
		KUNIT_EXPECT_EQ(test, folio_test_active(folio), active);
}

/* From the LRU list where it is by its flags, to where it belongs with others. */
static inline void change_lru(struct kunit *test, struct dirty_folio *f,
			      void (*change)(struct folio *folio))
{
	KUNIT_ASSERT_TRUE(test, folio_isolate_lru(f->folio));
	change(f->folio);
	folio_putback_lru(f->folio);
}

static inline void set_swapbacked(struct folio *folio)
{
	folio_set_swapbacked(folio);
}

/* What the file or the mm has of a folio goes. */
static inline void take_away(struct kunit *test, struct dirty_folio *f)
{
	if (f->file)
		shmem_truncate_range(file_inode(f->file), 0, -1);
	else
		KUNIT_EXPECT_EQ(test, do_madvise(current->mm, f->addr, f->nr_pages * PAGE_SIZE,
						 MADV_DONTNEED), 0);
}

/* Nothing is left of any of them: no folio, and no slot. */
static inline void unmap_dirty(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;
	unsigned int i;

	for (i = 0; i < k->nr; i++) {
		struct dirty_folio *f = &k->folios[i];

		vm_munmap(f->addr, PMD_SIZE);
		if (!f->file)
			continue;
		/* A kernel thread's last fput() is done later, by another one. */
		take_away(test, f);
		fput(f->file);
	}
	lru_add_drain();
	for (i = 0; i < k->nr; i++)
		KUNIT_EXPECT_TRUE_MSG(test, k->folios[i].freed, "folio %u of %u", i, k->nr);
	KUNIT_EXPECT_EQ(test, get_nr_swap_pages(), k->free_slots);
	k->nr = 0;
}

static inline unsigned long count_swapped(void)
{
	/* Too much for the stack. */
	static unsigned long events[NR_VM_EVENT_ITEMS];

	all_vm_events(events);
	return events[PSWPOUT];
}

/* Reclaims these folios, in this order. What became of them is overwritten by the next list. */
static inline const struct reclaimed *reclaim_list(struct kunit *test, struct dirty_folio *first,
						   unsigned int nr)
{
	struct dirty_flush_kunit *k = test->priv;
	struct reclaimed *got = &k->got;
	unsigned long swapped;
	LIST_HEAD(folios);
	unsigned int i;

	lru_add_drain();
	for (i = 0; i < nr; i++) {
		KUNIT_ASSERT_TRUE(test, folio_isolate_lru(first[i].folio));
		list_add(&first[i].folio->lru, &folios);
	}
	memset(got, 0, sizeof(*got));
	swapped = count_swapped();
	if (k->on_other) {
		/* Nothing else runs there, so that no flush finds it between two tasks. */
		sched_set_fifo(k->on_other);
		wait_for_other_cpu(&k->other);
	}
	k->reclaims = true;
	got->nr_reclaimed = reclaim_pages(&folios);
	k->reclaims = false;
	if (k->on_other)
		sched_set_normal(k->on_other, 0);
	got->pending_after = current->tlb_ubc.flush_required || current->tlb_ubc.writable;
	got->nr_swapped = count_swapped() - swapped;
	lru_add_drain();
	return got;
}

/* All but one folio were written, in the order in which they were unmapped, and freed. */
static inline void expect_written(struct kunit *test, const struct dirty_folio *but)
{
	struct dirty_flush_kunit *k = test->priv;
	const struct reclaimed *got = &k->got;
	unsigned int i, nr = 0, pages = 0;

	for (i = 0; i < k->nr; i++) {
		const struct dirty_folio *f = &k->folios[i];

		pages += f->nr_pages;
		if (f == but)
			continue;
		if (nr < got->nr_written)
			KUNIT_EXPECT_PTR_EQ_MSG(test, got->written[nr], f->folio, "folio %u", i);
		KUNIT_EXPECT_TRUE_MSG(test, f->freed, "folio %u", i);
		nr++;
	}
	KUNIT_EXPECT_EQ(test, got->nr_scanned, pages);
	KUNIT_EXPECT_FALSE(test, got->pending_at_write);
	KUNIT_EXPECT_FALSE(test, got->pending_at_free);
	KUNIT_EXPECT_FALSE(test, got->pending_after);
	/* Who faults in what was left locked waits forever. */
	KUNIT_ASSERT_EQ(test, got->nr_written, nr);
}

/* All were, and nothing else became of any. */
static inline void expect_all_written(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;
	const struct reclaimed *got = &k->got;
	unsigned int i, pages = 0;

	expect_written(test, NULL);
	for (i = 0; i < k->nr; i++)
		pages += k->folios[i].nr_pages;
	KUNIT_EXPECT_EQ(test, got->nr_reclaimed, pages);
	KUNIT_EXPECT_EQ(test, got->nr_swapped, pages);
	KUNIT_EXPECT_EQ(test, k->free_slots - get_nr_swap_pages(), pages);
	KUNIT_EXPECT_EQ(test, got->stat.nr_activate[0], 0);
	KUNIT_EXPECT_EQ(test, got->stat.nr_activate[1], 0);
	KUNIT_EXPECT_EQ(test, got->stat.nr_unmap_fail, 0);
	for (i = 0; i < k->nr; i++)
		expect_dirty_content(test, &k->folios[i], false);
}

/*
 * Whether a batch is flushed for in vain. A folio too large to join others was unmapped before
 * they were flushed for; and where large ones do not wait, it was flushed for them all.
 */
static inline bool settled(const unsigned int *pages, unsigned int count, unsigned int i)
{
	bool joined = i && pages[i] >= BATCH_PAGES && pages[i - 1] < BATCH_PAGES;

	if (LARGE_FOLIOS_WAIT)
		return joined;
	return pages[i] > FULL_BATCH || (i + 1 < count && pages[i + 1] >= BATCH_PAGES);
}

/* These batches were flushed for, each once. */
static inline void expect_batches(struct kunit *test, const unsigned int *pages, unsigned int count)
{
	const struct reclaimed *got = &((struct dirty_flush_kunit *)test->priv)->got;
	unsigned int i;

	KUNIT_EXPECT_EQ(test, got->nr_batches, count);
	KUNIT_EXPECT_EQ(test, got->nr_windows, count);
	for (i = 0; i < min(count, got->nr_batches); i++) {
		KUNIT_EXPECT_EQ_MSG(test, got->batches[i], pages[i], "batch %u", i);
		KUNIT_EXPECT_EQ_MSG(test, got->pending[i], !settled(pages, count, i),
				    "batch %u", i);
	}
}

#endif
