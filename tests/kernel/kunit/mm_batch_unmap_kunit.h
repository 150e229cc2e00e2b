/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_BATCH_UNMAP_KUNIT_H
#define _MM_BATCH_UNMAP_KUNIT_H
/*
 * Large folios that a real mm maps, and what try_to_unmap() makes of them: for the
 * suites of file_unmap.
 */

#include <kunit/test.h>
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/mman.h>
#include <linux/mm_batch.h>
#include <linux/mmu_notifier.h>
#include <linux/pagemap.h>
#include <linux/rmap.h>
#include <linux/sched/mm.h>
#include <linux/shmem_fs.h>
#include <linux/swap.h>
#include <linux/uaccess.h>
#include <linux/userfaultfd_k.h>
#include "../internal.h"

#define ORDER	4
#define NR	16
#define LENGTH	(NR * PAGE_SIZE)
#define ELSEWHERE SZ_2G			/* aligned, as a folio of that size wants it */

/* KIND_ANON is of file_unmap in no mode. */
enum kind { KIND_FILE, KIND_SHMEM, KIND_LAZYFREE, KIND_DROPPABLE, KIND_ANON };

static const enum kind unmapped_kinds[] = {
	KIND_FILE, KIND_SHMEM, KIND_LAZYFREE, KIND_DROPPABLE,
};

/* A folio, mapped from @addr on. */
struct mapping {
	struct mm_struct *mm;
	struct vm_area_struct *vma;
	struct file *file;
	struct folio *folio;
	unsigned long addr;
};

/* Runs of PTEs, each from its first page in the mapping on; one too many is kept to be seen. */
struct runs {
	unsigned int count;
	struct {
		unsigned int first, nr;
	} run[NR + 1];
};

/* What unmapping leaves, and how it came there. */
struct unmapped {
	unsigned long ptes[NR];		/* page frames as from the folio's first */
	long file, anon, shmem, swap;	/* what they went down by */
	long rss, hiwater;		/* what there was, and what is known to have been */
	int mapcount, refs;
	bool dirty, swapbacked;
	bool pending, pending_dirty;	/* a flush that was put off, and for a dirty PTE */
	struct runs runs;
	unsigned int flushes;		/* told of at all */
};

/*
 * The flush behind each run's clearing tells the runs. With TTU_BATCH_FLUSH it may be
 * put off, and then tells no range.
 */
struct recorder {
	struct mmu_notifier notifier;
	unsigned long addr;		/* of the mapping, or 0 */
	struct runs runs;
	unsigned int flushes;
};

static inline unsigned int end_of_run(const struct runs *runs, unsigned int i)
{
	return runs->run[i].first + runs->run[i].nr;
}

static void record(struct mmu_notifier *notifier, struct mm_struct *mm,
		   unsigned long start, unsigned long end)
{
	struct recorder *recorder = container_of(notifier, struct recorder, notifier);
	unsigned int first = (start - recorder->addr) / PAGE_SIZE;
	struct runs *runs = &recorder->runs;

	recorder->flushes += !!recorder->addr;
	if (!recorder->addr || start < recorder->addr || end > recorder->addr + LENGTH)
		return;
	/*
	 * Two runs do not overlap. What does is the flush of arm64's contiguous PTEs,
	 * which are taken apart before some of them are cleared.
	 */
	while (runs->count && end_of_run(runs, runs->count - 1) > first)
		runs->count--;
	if (runs->count > NR)
		return;
	runs->run[runs->count].first = first;
	runs->run[runs->count++].nr = (end - start) / PAGE_SIZE;
}

static const struct mmu_notifier_ops record_ops = {
	.arch_invalidate_secondary_tlbs = record,
};

/* An mm, and who looks at what becomes of its PTEs. */
static inline int unmap_kunit_begin(struct kunit *test)
{
	struct recorder *recorder = kunit_kzalloc(test, sizeof(*recorder), GFP_KERNEL);
	int error = recorder ? kunit_attach_mm() : -ENOMEM;

	if (error)
		return error;
	recorder->notifier.ops = &record_ops;
	error = mmu_notifier_register(&recorder->notifier, current->mm);
	if (!error)
		test->priv = recorder;
	return error;
}

static inline void unmap_kunit_end(struct kunit *test)
{
	struct recorder *recorder = test->priv;

	if (recorder)
		mmu_notifier_unregister(&recorder->notifier, recorder->notifier.mm);
}

/* So that the folio begins @before pages before a page table's end. */
static inline unsigned long place(unsigned int before)
{
	return SZ_1G + PMD_SIZE - before * PAGE_SIZE;
}

static inline void touch(struct kunit *test, unsigned long addr)
{
	unsigned long i;

	for (i = 0; i < NR; i++)
		KUNIT_ASSERT_EQ(test, put_user((char)1, (char __user *)addr + i * PAGE_SIZE), 0);
}

static inline void map_pages(struct kunit *test, struct file *file, unsigned long addr, int flags)
{
	unsigned long got = vm_mmap(file, addr, LENGTH, PROT_READ | PROT_WRITE,
				    MAP_FIXED | MAP_NORESERVE | flags, 0);

	KUNIT_ASSERT_EQ(test, got, addr);
	touch(test, addr);
}

static const struct vm_operations_struct page_cache_vm_ops = {
	.fault = filemap_fault,
	.map_pages = filemap_map_pages,
};

static int page_cache_mmap(struct vm_area_desc *desc)
{
	desc->vm_ops = &page_cache_vm_ops;
	return 0;
}

static const struct file_operations page_cache_fops = {
	.mmap_prepare = page_cache_mmap,
};

/* A file without a disk, of so many pages. */
static inline struct file *diskless_file(struct kunit *test, unsigned long nr_pages)
{
	struct file *file;

	file = anon_inode_create_getfile("mm_batch", &page_cache_fops, NULL, O_RDWR, NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	mapping_set_large_folios(file->f_mapping);
	i_size_write(file_inode(file), nr_pages * PAGE_SIZE);
	return file;
}

/* One folio more of such a file. */
static inline struct folio *add_to_page_cache(struct kunit *test, struct file *file, pgoff_t index,
					      unsigned int order)
{
	struct folio *folio = filemap_alloc_folio(GFP_KERNEL | __GFP_ZERO, order, NULL);
	int error;

	KUNIT_ASSERT_NOT_NULL(test, folio);
	error = filemap_add_folio(file->f_mapping, folio, index, GFP_KERNEL);
	KUNIT_ASSERT_EQ(test, error, 0);
	folio_mark_uptodate(folio);
	folio_unlock(folio);
	folio_put(folio);
	return folio;
}

/* A file all of whose pages are one folio. */
static inline struct file *page_cache_file(struct kunit *test)
{
	struct file *file = diskless_file(test, NR);

	add_to_page_cache(test, file, 0, ORDER);
	return file;
}

/* As mremap() does: only so can a folio of anonymous memory lie across page tables. */
static inline void move(struct kunit *test, unsigned long from, unsigned long to)
{
	PAGETABLE_MOVE(pmc, NULL, NULL, from, to, LENGTH);
	struct mm_struct *mm = current->mm;
	unsigned long moved = 0;

	mmap_write_lock(mm);
	pmc.old = vma_lookup(mm, from);
	vma_start_write(pmc.old);
	pmc.new = copy_vma(&pmc.old, to, LENGTH, vma_start_pgoff(pmc.old),
			   vma_start_anon_pgoff(pmc.old), &pmc.need_rmap_locks, false);
	if (pmc.new) {
		moved = move_page_tables(&pmc);
		vm_stat_account(mm, pmc.new->vm_flags, NR);
	}
	mmap_write_unlock(mm);
	KUNIT_ASSERT_EQ(test, moved, LENGTH);
	KUNIT_ASSERT_EQ(test, vm_munmap(from, LENGTH), 0);
}

/* Of that kind, beginning @before pages before a page table's end, each page written to. */
static inline struct mapping map(struct kunit *test, enum kind kind, unsigned int before)
{
	bool lazyfree = kind == KIND_LAZYFREE || kind == KIND_DROPPABLE;
	struct mapping m = { .mm = current->mm, .addr = place(before) };
	struct page *page;

	switch (kind) {
	case KIND_FILE:
		m.file = page_cache_file(test);
		map_pages(test, m.file, m.addr, MAP_SHARED);
		break;
	case KIND_SHMEM:
		m.file = shmem_kernel_file_setup("mm_batch", LENGTH, EMPTY_VMA_FLAGS);
		KUNIT_ASSERT_FALSE(test, IS_ERR(m.file));
		map_pages(test, m.file, ELSEWHERE, MAP_SHARED);
		KUNIT_ASSERT_EQ(test, vm_munmap(ELSEWHERE, LENGTH), 0);
		map_pages(test, m.file, m.addr, MAP_SHARED);
		break;
	default:
		map_pages(test, NULL, ELSEWHERE,
			  kind == KIND_DROPPABLE ? MAP_DROPPABLE : MAP_PRIVATE);
		lru_add_drain();
		if (kind == KIND_LAZYFREE)
			KUNIT_ASSERT_EQ(test, do_madvise(m.mm, ELSEWHERE, LENGTH, MADV_FREE), 0);
		move(test, ELSEWHERE, m.addr);
	}
	m.vma = vma_lookup(m.mm, m.addr);

	/* The reference that reclaim would have. */
	KUNIT_ASSERT_EQ(test, get_user_pages_fast(m.addr, 1, 0, &page), 1);
	m.folio = page_folio(page);
	lru_add_drain();
	KUNIT_ASSERT_EQ_MSG(test, folio_order(m.folio), ORDER,
			    "boot with thp_anon=64K:always thp_shmem=64K:always");
	KUNIT_ASSERT_EQ(test, folio_test_lazyfree(m.folio), lazyfree);
	return m;
}

static inline void unmap_all(struct mapping *m)
{
	folio_put(m->folio);
	vm_munmap(m->addr, LENGTH);
	if (m->file)
		fput(m->file);
}

static inline pte_t pte_at(struct mapping *m, unsigned int i)
{
	spinlock_t *ptl; /* the page table's */
	pte_t *ptep, pte;

	ptep = get_locked_pte(m->mm, m->addr + i * PAGE_SIZE, &ptl);
	if (!ptep)
		return __pte(0);
	pte = ptep_get(ptep);
	pte_unmap_unlock(ptep, ptl);
#ifdef CONFIG_ARM64_CONTPTE
	/* Whether arm64 has it in a contiguous group is its own business. */
	if (pte_present(pte))
		pte = pte_mknoncont(pte);
#endif
	return pte;
}

/* Gives a present PTE other bits. Nobody uses the translation before the next flush. */
static inline void change_pte(struct mapping *m, unsigned int i, pte_t pte)
{
	unsigned long addr = m->addr + i * PAGE_SIZE;
	spinlock_t *ptl; /* the page table's */
	pte_t *ptep;

	ptep = get_locked_pte(m->mm, addr, &ptl);
	if (!ptep)
		return;
	ptep_get_and_clear(m->mm, addr, ptep);
	set_pte_at(m->mm, addr, ptep, pte);
	pte_unmap_unlock(ptep, ptl);
}

static inline bool maps_page(struct mapping *m, unsigned int i)
{
	pte_t pte = pte_at(m, i);

	return pte_present(pte) && pte_pfn(pte) == folio_pfn(m->folio) + i;
}

/* A build's C may find mixed runs of a file, too. */
#ifdef MM_BATCH_FILE_UNMAP_MIXED_IN_C
#define MIXED_IN_C true
#else
#define MIXED_IN_C false
#endif

static inline bool finds_mixed_runs(enum mm_batch_mode mode)
{
	return mode == MM_BATCH_RUST ? mm_batch_file_unmap_mixed_file_runs :
				       mode == MM_BATCH_C && MIXED_IN_C;
}

/* The runs that a mode is to find, by their definition. */
static inline struct runs expected_runs_in(enum mm_batch_mode mode, struct mapping *m)
{
	struct vm_area_struct *vma, *before = NULL;
	struct runs runs = {};
	pte_t pte, first;
	unsigned int i;
	bool mixed = finds_mixed_runs(mode) && !folio_test_anon(m->folio);

	for (i = 0; i < NR; i++, before = vma) {
		unsigned long addr = m->addr + i * PAGE_SIZE;

		vma = maps_page(m, i) ? vma_lookup(m->mm, addr) : NULL;
		if (!vma)
			continue;
		pte = pte_at(m, i);
		if (mode != MM_BATCH_OFF && vma == before && !IS_ALIGNED(addr, PMD_SIZE) &&
		    !pte_uffd(pte) == !pte_uffd(first) &&
		    !pte_protnone(pte) == !pte_protnone(first) &&
		    (mixed || (!pte_write(pte) == !pte_write(first) &&
			       !pte_soft_dirty(pte) == !pte_soft_dirty(first)))) {
			runs.run[runs.count - 1].nr++;
			continue;
		}
		first = pte;
		runs.run[runs.count].first = i;
		runs.run[runs.count++].nr = 1;
	}
	return runs;
}

/* Those that the present mode of file_unmap is to find. */
static inline struct runs expected_runs(struct mapping *m)
{
	return expected_runs_in(mm_batch_file_unmap_mode(), m);
}

/* The first @count runs are the same. */
static inline void expect_runs(struct kunit *test, const struct runs *got, const struct runs *want,
			       unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		KUNIT_EXPECT_EQ_MSG(test, got->run[i].first, want->run[i].first, "run %u", i);
		KUNIT_EXPECT_EQ_MSG(test, got->run[i].nr, want->run[i].nr, "run %u", i);
	}
}

static inline long rss(struct mm_struct *mm, int member)
{
	return percpu_counter_sum(&mm->rss_stat[member]);
}

/* All of a counter where get_mm_rss() looks for it, which no other CPU changes. */
static inline void settle_rss(struct mm_struct *mm)
{
	unsigned int i;

	for (i = 0; i < NR_MM_COUNTERS; i++)
		percpu_counter_set(&mm->rss_stat[i], rss(mm, i));
}

static inline struct unmapped unmap(struct kunit *test, struct mapping *m, enum ttu_flags flags)
{
	struct tlbflush_unmap_batch *ubc = &current->tlb_ubc;
	struct recorder *recorder = test->priv;
	struct unmapped r = {};
	unsigned int i;

	settle_rss(m->mm);
	r.rss = get_mm_rss(m->mm);
	m->mm->hiwater_rss = 0;
	r.file = rss(m->mm, MM_FILEPAGES);
	r.anon = rss(m->mm, MM_ANONPAGES);
	r.shmem = rss(m->mm, MM_SHMEMPAGES);
	r.swap = rss(m->mm, MM_SWAPENTS);
	/* Whether it is swap-backed is the LRU's business, so reclaim takes it off first. */
	if (folio_isolate_lru(m->folio))
		folio_put(m->folio);
	folio_lock(m->folio);
	recorder->runs.count = 0;
	recorder->flushes = 0;
	recorder->addr = m->addr;
	try_to_unmap_flush();
	try_to_unmap(m->folio, flags | TTU_SYNC);
	recorder->addr = 0;
	r.pending = ubc->flush_required;
	r.pending_dirty = ubc->writable;
	try_to_unmap_flush();
	r.hiwater = m->mm->hiwater_rss;
	r.runs = recorder->runs;
	r.flushes = recorder->flushes;
	r.dirty = folio_test_dirty(m->folio);
	r.swapbacked = folio_test_swapbacked(m->folio);
	r.mapcount = folio_mapcount(m->folio);
	r.refs = folio_ref_count(m->folio);
	folio_unlock(m->folio);
	folio_get(m->folio);
	folio_putback_lru(m->folio);
	r.file -= rss(m->mm, MM_FILEPAGES);
	r.anon -= rss(m->mm, MM_ANONPAGES);
	r.shmem -= rss(m->mm, MM_SHMEMPAGES);
	r.swap -= rss(m->mm, MM_SWAPENTS);
	for (i = 0; i < NR; i++) {
		pte_t pte = pte_at(m, i);

		r.ptes[i] = pte_val(pte);
		if (pte_present(pte))
			r.ptes[i] -= pte_val(pfn_pte(folio_pfn(m->folio), __pgprot(0)));
	}
	return r;
}

#endif
