/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_BATCH_DIRTY_FOLIO_KUNIT_H
#define _MM_BATCH_DIRTY_FOLIO_KUNIT_H
/*
 * For the suites of dirty_flush: dirty folios that a real mm maps, what is in them, and who takes
 * them away.
 */

#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/swap.h>
#include <linux/swap_ops.h>
#include "mm_batch_kunit.h"
#include "mm_batch_other_cpu_kunit.h"
#include "mm_batch_swap_kunit.h"

#define MAX_DIRTY	112	/* folios of a list */
#define FULL_BATCH	SWAP_CLUSTER_MAX	/* folios */
#define PAGE_LIMIT	512			/* pages */

/* Where they do not, they are flushed for before they are unlocked, and written at once. */
#define LARGE_FOLIOS_WAIT	(!ptes_need_break_before_make())

/* A folio that is mapped at @addr. The test holds no reference. */
struct dirty_folio {
	struct folio *folio;
	struct file *file;		/* of shmem, whose only folio it is */
	unsigned long addr;
	unsigned int nr_pages;
	unsigned long salt;		/* of what its pages have in them */
	unsigned long stored;		/* behind its taking, to its first page */
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
	unsigned long taken_back;	/* pages: the stop rule */
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
	bool reschedule;		/* it is to be rescheduled there */
	struct other_cpu *other;	/* if it has the mm */
	/* Called in the first window, in which a batch waits. Must not abort the test. */
	void (*in_window)(struct kunit *test);
	unsigned int nr;
	unsigned long stride;		/* from one to the next, if not a page table's */
	struct dirty_folio folios[MAX_DIRTY];
	struct reclaimed got;
	long free_slots;
	unsigned long huge_orders;
	enum mm_batch_mode mode_before, batch_mode_before;
};

/* Another CPU has the mm from here on, so that flushes are put off. */
static inline void have_other_cpu(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;

	k->other = on_other_cpu(test);
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

/*
 * Faults in what is swapped. Of what was taken away there is nothing, but for what was stored
 * behind that: it is zero.
 */
static inline void expect_dirty_content(struct kunit *test, const struct dirty_folio *f, bool taken)
{
	unsigned int i;

	for (i = 0; i < f->nr_pages; i++) {
		unsigned long __user *at = (void __user *)(f->addr + i * PAGE_SIZE);
		unsigned long found = ~0ul;

		KUNIT_EXPECT_EQ(test, get_user(found, at), 0);
		KUNIT_EXPECT_EQ_MSG(test, found,
				    !taken ? dirty_content(f, i) : i ? 0 : f->stored,
				    "page %u", i);
	}
}

/*
 * One folio more, of which the first pages are mapped, and its file has no others. Each
 * is mapped by a page table of its own, unless k->stride is less.
 */
static inline struct dirty_folio *map_some_dirty(struct kunit *test, unsigned int nr_pages,
						 unsigned int order, bool shmem)
{
	struct dirty_flush_kunit *k = test->priv;
	struct dirty_folio *f = &k->folios[k->nr];
	unsigned long length = PAGE_SIZE << order;
	struct page *page;

	KUNIT_ASSERT_LT(test, k->nr, MAX_DIRTY);
	*f = (struct dirty_folio) {
		.addr = SZ_1G + k->nr * (k->stride ?: PMD_SIZE),
		.nr_pages = nr_pages,
	};
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

/* With its slot in swap. */
static inline struct dirty_folio *map_in_swap_cache(struct kunit *test)
{
	struct dirty_folio *f = map_dirty(test, 0, false);
	int error;

	folio_lock(f->folio);
	error = folio_alloc_swap(f->folio);
	if (!error)
		folio_mark_dirty(f->folio);
	folio_unlock(f->folio);
	KUNIT_ASSERT_EQ(test, error, 0);
	return f;
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

/* The same, and the other CPU stores there, which is to be found there from then on. */
static inline void take_away_and_store(struct kunit *test, struct dirty_folio *f)
{
	struct dirty_flush_kunit *k = test->priv;

	take_away(test, f);
	f->stored = f->salt + 0x2000;
	other_cpu_stores(test, k->other, f->addr, f->stored);
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

/* By its page table: this CPU may have a translation of it yet, by which nothing faults. */
static inline void fault_in(struct kunit *test, struct dirty_folio *f, unsigned int gup_flags)
{
	struct page *page = NULL;

	KUNIT_EXPECT_FALSE(test, folio_mapped(f->folio));
	KUNIT_EXPECT_EQ(test, get_user_pages_fast(f->addr, 1, gup_flags, &page), 1);
	KUNIT_EXPECT_PTR_EQ(test, page, folio_page(f->folio, 0));
	if (page)
		put_page(page);
	KUNIT_EXPECT_TRUE(test, folio_mapped(f->folio));
}

#endif
