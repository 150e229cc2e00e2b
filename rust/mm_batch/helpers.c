// SPDX-License-Identifier: GPL-2.0

/*
 * What mm/mm_batch/ needs of mm, and no module may have: rust/Makefile leaves what
 * begins with rust_helper_mm_batch_ out of the exports.
 */
#ifdef CONFIG_MM_BATCH
#include <linux/mm.h>
#include <linux/mm_batch.h>
#include <linux/mm_inline.h>
#include <linux/rmap.h>
#include <linux/sched.h>
#include <linux/userfaultfd_k.h>
#include "../internal.h"
#include "../swap.h"

__rust_helper struct page *rust_helper_mm_batch_pfn_to_page(unsigned long pfn)
{
	return pfn_to_page(pfn);
}

__rust_helper unsigned long rust_helper_mm_batch_page_to_pfn(const struct page *page)
{
	return page_to_pfn(page);
}

/* Pages from @pfn to the end of its contiguous struct pages. */
__rust_helper unsigned long
rust_helper_mm_batch_contiguous_struct_pages(unsigned long pfn)
{
#if defined(CONFIG_SPARSEMEM) && !defined(CONFIG_SPARSEMEM_VMEMMAP)
	return PAGES_PER_SECTION - (pfn & ~PAGE_SECTION_MASK);
#else
	return ULONG_MAX;
#endif
}

__rust_helper int rust_helper_mm_batch_page_zone_id(struct page *page)
{
	return page_zone_id(page);
}

__rust_helper unsigned long
rust_helper_mm_batch_num_pages_contiguous(struct page **pages, unsigned long nr_pages)
{
	return num_pages_contiguous(pages, nr_pages);
}

__rust_helper void rust_helper_mm_batch_cond_resched(void)
{
	cond_resched();
}

/*
 * PTEs, as words of pte_val(): on Xen PV that is not what is in the page table,
 * and only pte_val() and __pte() lead from the one to the other.
 */
static_assert(sizeof(pte_t) == sizeof(u64));

__rust_helper u64 rust_helper_mm_batch_ptep_get(pte_t *ptep)
{
	return pte_val(ptep_get(ptep));
}

__rust_helper unsigned int rust_helper_mm_batch_pte_batch_hint(pte_t *ptep, u64 pte)
{
	return pte_batch_hint(ptep, __pte(pte));
}

/* From a page of a folio to its next one: both are frames that exist. */
__rust_helper u64 rust_helper_mm_batch_pte_step(u64 pte)
{
	return pte_val(pte_advance_pfn(__pte(pte), 1)) - pte;
}

/* Runs of PTEs, under their page table lock. */

__rust_helper void
rust_helper_mm_batch_set_run(struct vm_area_struct *vma, unsigned long addr,
			     pte_t *ptep, u64 pte, unsigned int nr)
{
	set_ptes(vma->vm_mm, addr, ptep, __pte(pte), nr);
}

/* The run's mappings are gone: all that counted them follows. */
__rust_helper void
rust_helper_mm_batch_end_mappings(struct folio *folio, struct page *page,
				  struct vm_area_struct *vma, unsigned int nr)
{
	struct mm_struct *mm = vma->vm_mm;

	update_hiwater_rss(mm);
	add_mm_counter(mm, mm_counter(folio), -(long)nr);
	folio_remove_rmap_ptes(folio, page, nr, vma);
	if (vma->vm_flags & VM_LOCKED)
		mlock_drain_local();
	folio_put_refs(folio, nr);
}

/* The same, where the PTEs are none; the first was @pte. */
__rust_helper void
rust_helper_mm_batch_vanish_run(struct folio *folio, struct page *page,
				const struct page_vma_mapped_walk *pvmw, u64 pte,
				unsigned int nr)
{
	struct vm_area_struct *vma = pvmw->vma;

	if (userfaultfd_wp(vma))
		cond_install_uffd_wp_ptes(vma, pvmw->address, pvmw->pte, __pte(pte), nr);
	rust_helper_mm_batch_end_mappings(folio, page, vma, nr);
}

__rust_helper bool rust_helper_mm_batch_vma_droppable(struct vm_area_struct *vma)
{
	return vma->vm_flags & VM_DROPPABLE;
}

/* The folio. */

__rust_helper bool rust_helper_mm_batch_folio_test_swapcache(struct folio *folio)
{
	return folio_test_swapcache(folio);
}

__rust_helper void rust_helper_mm_batch_warn_swapcache(void)
{
	WARN_ON_ONCE(1);
}

__rust_helper bool rust_helper_mm_batch_folio_test_dirty(struct folio *folio)
{
	return folio_test_dirty(folio);
}

__rust_helper void rust_helper_mm_batch_folio_set_swapbacked(struct folio *folio)
{
	folio_set_swapbacked(folio);
}

/* References beyond one for each mapping, with the mapcount held still. */
__rust_helper int rust_helper_mm_batch_folio_extra_refs(struct folio *folio)
{
	int extra;

	folio_lock_large_mapcount(folio);
	extra = folio_ref_count(folio) - folio_large_mapcount(folio);
	folio_unlock_large_mapcount(folio);
	return extra;
}

/* Swap entries. */

__rust_helper bool
rust_helper_mm_batch_folio_dup_swap_pages(struct folio *folio, struct page *page,
					  unsigned int nr)
{
	return !mm_batch_should_fail(MM_BATCH_FAULT_SWAP_DUP) &&
	       !folio_dup_swap_pages(folio, page, nr);
}

__rust_helper void
rust_helper_mm_batch_folio_put_swap_pages(struct folio *folio, struct page *page,
					  unsigned int nr)
{
	folio_put_swap_pages(folio, page, nr);
}

__rust_helper bool rust_helper_mm_batch_folio_maybe_dma_pinned(struct folio *folio)
{
	return mm_batch_should_fail(MM_BATCH_FAULT_PIN) ||
	       folio_maybe_dma_pinned(folio);
}

__rust_helper struct mm_batch_sub_batch
rust_helper_mm_batch_page_anon_exclusive_batch(struct page *page, unsigned int nr)
{
	bool exclusive = PageAnonExclusive(page);

	return (struct mm_batch_sub_batch){
		.nr = page_anon_exclusive_batch(0, nr, page, exclusive),
		.exclusive = exclusive,
	};
}

__rust_helper void
rust_helper_mm_batch_clear_pages_anon_exclusive(struct page *page, unsigned int nr)
{
	clear_pages_anon_exclusive(page, nr);
}

__rust_helper void rust_helper_mm_batch_smp_mb_after_atomic(void)
{
	/* Between clearing PageAnonExclusive and writing swap entries. */
	smp_mb__after_atomic();
}

__rust_helper void
rust_helper_mm_batch_prepare_for_swap_entries(struct vm_area_struct *vma,
					      unsigned int nr)
{
	mm_prepare_for_swap_entries(vma->vm_mm);
	add_mm_counter(vma->vm_mm, MM_SWAPENTS, nr);
}

/* The PTEs were @pte, and their pages exclusive or not. */
__rust_helper void
rust_helper_mm_batch_set_swp_run(struct vm_area_struct *vma, unsigned long addr,
				 pte_t *ptep, struct page *page, u64 pte,
				 unsigned int nr, bool exclusive)
{
	pte_t swp_pte = swp_pte_prepare(page_swap_entry(page), __pte(pte), exclusive);

	set_swp_ptes(vma->vm_mm, addr, ptep, swp_pte, nr);
}

/* Dirty folios in reclaim. */

#ifdef CONFIG_MM_BATCH_KUNIT_TEST
__rust_helper void rust_helper_mm_batch_open_dirty_flush_window(void)
{
	typeof(mm_batch_dirty_flush_window) window =
		READ_ONCE(mm_batch_dirty_flush_window);

	if (window)
		window();
}
#endif

__rust_helper void rust_helper_mm_batch_try_to_unmap_flush_dirty(void)
{
	try_to_unmap_flush_dirty();
}

/* Without fail_mm_batch/pin, which is for a run of PTEs. */
__rust_helper bool
rust_helper_mm_batch_waiting_folio_maybe_dma_pinned(struct folio *folio)
{
	return folio_maybe_dma_pinned(folio);
}

__rust_helper unsigned int rust_helper_mm_batch_folio_nr_pages(struct folio *folio)
{
	return folio_nr_pages(folio);
}

__rust_helper void rust_helper_mm_batch_folio_unlock(struct folio *folio)
{
	folio_unlock(folio);
}

__rust_helper bool rust_helper_mm_batch_folio_trylock(struct folio *folio)
{
	return folio_trylock(folio);
}

__rust_helper bool
rust_helper_mm_batch_folio_contain_hwpoisoned_page(struct folio *folio)
{
	return folio_contain_hwpoisoned_page(folio);
}

/* It has buffers, or something else of its file system. */
__rust_helper bool rust_helper_mm_batch_folio_test_private(struct folio *folio)
{
	return folio_test_private(folio);
}

__rust_helper bool rust_helper_mm_batch_folio_mapped(struct folio *folio)
{
	return folio_mapped(folio);
}

__rust_helper bool rust_helper_mm_batch_folio_evictable(struct folio *folio)
{
	return folio_evictable(folio);
}

__rust_helper bool rust_helper_mm_batch_folio_test_writeback(struct folio *folio)
{
	return folio_test_writeback(folio);
}

__rust_helper int rust_helper_mm_batch_folio_ref_count(struct folio *folio)
{
	return folio_ref_count(folio);
}

__rust_helper struct address_space *
rust_helper_mm_batch_folio_mapping(struct folio *folio)
{
	return folio_mapping(folio);
}
#endif /* CONFIG_MM_BATCH */
