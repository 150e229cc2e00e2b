/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_BATCH_SWAP_KUNIT_H
#define _MM_BATCH_SWAP_KUNIT_H
/*
 * Large anonymous folios that have swap slots, and what try_to_unmap() leaves of them:
 * for the suites of anon_unmap. They need a swap device, so they are started once a user
 * space has set one up.
 */

#include <linux/leafops.h>
#include <linux/rcupdate.h>
#include "mm_batch_unmap_kunit.h"
#include "../swap.h"

/* What became of a page. */
struct page_state {
	bool mapped;		/* the page itself, by the PTE in its place */
	bool swapped;		/* its slot */
	bool write, soft_dirty, uffd, protnone, dirty, young;
	bool exclusive;		/* the page, or its entry says so */
	int count;		/* of entries of its slot */
};

/* Of all of a folio, and of the mm. */
struct swapped {
	struct page_state pages[NR];
	struct unmapped all;
	unsigned int nr;	/* how many are swapped */
};

static inline int swap_suite_init(struct kunit_suite *suite)
{
	if (!total_swap_pages) {
		kunit_err(suite, "no swap: swapon a device first");
		return -ENODEV;
	}
	return 0;
}

/* Without it, as on arm64 with pages of 16K, a large folio is split before it gets slots. */
static inline int needs_thp_swap(struct kunit *test)
{
	if (!IS_ENABLED(CONFIG_THP_SWAP))
		kunit_skip(test, "needs CONFIG_THP_SWAP");
	return 0;
}

static inline swp_entry_t slot(struct mapping *m, unsigned int i)
{
	swp_entry_t entry = m->folio->swap;

	entry.val += i;
	return entry;
}

/* What page @i has in it. */
static inline unsigned long content(unsigned int i)
{
	return 0x5a5a0000ul + i;
}

static inline void write_content(struct kunit *test, struct mapping *m)
{
	unsigned int i;

	for (i = 0; i < NR; i++) {
		unsigned long __user *at = (void __user *)(m->addr + i * PAGE_SIZE);

		KUNIT_ASSERT_EQ(test, put_user(content(i), at), 0);
	}
}

/* Faults in what is swapped. */
static inline void expect_content(struct kunit *test, struct mapping *m)
{
	unsigned int i;

	for (i = 0; i < NR; i++) {
		unsigned long __user *at = (void __user *)(m->addr + i * PAGE_SIZE);
		unsigned long found = 0;

		KUNIT_EXPECT_EQ(test, get_user(found, at), 0);
		KUNIT_EXPECT_EQ_MSG(test, found, content(i), "page %u", i);
	}
}

/* A folio that has slots, mapped @before pages before a page table's end. */
static inline struct mapping map_with_slots(struct kunit *test, unsigned int before)
{
	struct mapping m = map(test, KIND_ANON, before);
	int error;

	write_content(test, &m);
	folio_lock(m.folio);
	error = folio_alloc_swap(m.folio);
	if (!error)
		folio_mark_dirty(m.folio);
	folio_unlock(m.folio);
	KUNIT_ASSERT_EQ_MSG(test, error, 0, "no slots for a folio of %u pages", NR);
	return m;
}

static inline void unmap_with_slots(struct mapping *m)
{
	vm_munmap(m->addr, LENGTH);
	folio_lock(m->folio);
	folio_free_swap(m->folio);
	folio_unlock(m->folio);
	folio_put(m->folio);
}

/*
 * As a fork leaves a page: not to be written to, and maybe shared. A kthread's mm cannot
 * be forked.
 */
static inline void share(struct mapping *m, unsigned int i)
{
	unsigned long addr = m->addr + i * PAGE_SIZE;
	spinlock_t *ptl; /* the page table's */
	pte_t *ptep;

	ptep = get_locked_pte(m->mm, addr, &ptl);
	if (!ptep)
		return;
	ptep_set_wrprotect(m->mm, addr, ptep);
	ClearPageAnonExclusive(folio_page(m->folio, i));
	pte_unmap_unlock(ptep, ptl);
	flush_tlb_mm(m->mm);
}

static inline struct page_state page_state(struct mapping *m, unsigned int i)
{
	/* A cluster's counts may go, says lockdep; not those of a folio that has slots. */
	guard(rcu)();
	bool slots = folio_test_swapcache(m->folio);
	struct page_state s = { .count = slots ? __swap_count(slot(m, i)) : 0 };
	pte_t pte = pte_at(m, i);

	if (maps_page(m, i)) {
		s.mapped = true;
		s.write = pte_write(pte);
		s.soft_dirty = pte_soft_dirty(pte);
		s.uffd = pte_uffd(pte);
		s.protnone = pte_protnone(pte);
		s.dirty = pte_dirty(pte);
		s.young = pte_young(pte);
		s.exclusive = PageAnonExclusive(folio_page(m->folio, i));
	} else if (!pte_none(pte) && softleaf_is_swap(softleaf_from_pte(pte))) {
		s.swapped = slots && softleaf_from_pte(pte).val == slot(m, i).val;
		s.soft_dirty = pte_swp_soft_dirty(pte);
		s.uffd = pte_swp_uffd(pte);
		s.exclusive = pte_swp_exclusive(pte);
	}
	return s;
}

/* How the pages are. */
static inline void look(struct mapping *m, struct swapped *r)
{
	unsigned int i;

	r->nr = 0;
	for (i = 0; i < NR; i++) {
		r->pages[i] = page_state(m, i);
		r->nr += r->pages[i].swapped;
	}
}

static __maybe_unused noinline_for_stack struct swapped
swap_out(struct kunit *test, struct mapping *m, enum ttu_flags flags)
{
	struct swapped r = { .all = unmap(test, m, flags) };

	look(m, &r);
	return r;
}

/* A page is as it was, but that it may be dirty or young. */
static inline void expect_as_before(struct kunit *test, const struct page_state *got,
				    const struct page_state *was, unsigned int i)
{
	KUNIT_EXPECT_EQ_MSG(test, got->mapped, was->mapped, "page %u", i);
	KUNIT_EXPECT_EQ_MSG(test, got->write, was->write, "page %u", i);
	KUNIT_EXPECT_EQ_MSG(test, got->soft_dirty, was->soft_dirty, "page %u", i);
	KUNIT_EXPECT_EQ_MSG(test, got->uffd, was->uffd, "page %u", i);
	KUNIT_EXPECT_EQ_MSG(test, got->protnone, was->protnone, "page %u", i);
	KUNIT_EXPECT_EQ_MSG(test, got->exclusive, was->exclusive, "page %u", i);
	KUNIT_EXPECT_EQ_MSG(test, got->count, was->count, "page %u", i);
	KUNIT_EXPECT_GE_MSG(test, got->dirty, was->dirty, "page %u", i);
	KUNIT_EXPECT_GE_MSG(test, got->young, was->young, "page %u", i);
}

/* A page is swapped out, and what is known of it is what was known of its mapping. */
static inline void expect_swapped(struct kunit *test, struct mapping *m,
				  const struct page_state *got, const struct page_state *was,
				  unsigned int i)
{
	KUNIT_EXPECT_TRUE_MSG(test, got->swapped, "page %u", i);
	KUNIT_EXPECT_EQ_MSG(test, got->soft_dirty, was->soft_dirty, "page %u", i);
	KUNIT_EXPECT_EQ_MSG(test, got->uffd, was->uffd, "page %u", i);
	KUNIT_EXPECT_EQ_MSG(test, got->exclusive, was->exclusive, "page %u", i);
	KUNIT_EXPECT_EQ_MSG(test, got->count, was->count + 1, "page %u", i);
	KUNIT_EXPECT_FALSE_MSG(test, PageAnonExclusive(folio_page(m->folio, i)), "page %u", i);
}

#endif
