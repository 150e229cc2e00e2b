// SPDX-License-Identifier: GPL-2.0
/*
 * Steps of folio_batch in the running kernel, each by itself: what is isolated together, of which
 * folios it is known together whether they were referenced, which wait for an rmap lock, and for
 * which is flushed.
 */

#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include "mm_batch_dirty_flush_kunit.h"

static int steps_init(struct kunit *test)
{
	return dirty_flush_begin(test, MM_BATCH_OFF);
}

/* One that cannot be evicted, as if mlock() had come since it was looked at: it goes back. */
static void test_isolate_unevictable(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;
	struct folio_batch folios;
	struct folio *folio, *next;
	LIST_HEAD(isolated);
	unsigned int i;

	map_neighbours(test, 3);
	lru_add_drain();
	change_lru(test, &k->folios[1], folio_set_mlocked);
	lru_add_drain();
	KUNIT_ASSERT_TRUE(test, folio_test_unevictable(k->folios[1].folio));

	folio_batch_init(&folios);
	for (i = 0; i < k->nr; i++)
		folio_batch_add(&folios, k->folios[i].folio);
	folios_isolate_lru(&folios, &isolated);
	KUNIT_EXPECT_EQ(test, folio_batch_count(&folios), 0);
	KUNIT_EXPECT_EQ(test, list_count_nodes(&isolated), 2);
	list_for_each_entry_safe(folio, next, &isolated, lru) {
		KUNIT_EXPECT_FALSE(test, folio_test_lru(folio));
		KUNIT_EXPECT_FALSE(test, folio_test_unevictable(folio));
		folio_putback_lru(folio);
	}
	lru_add_drain();
	for (i = 0; i < k->nr; i++) {
		KUNIT_EXPECT_TRUE_MSG(test, folio_test_lru(k->folios[i].folio), "folio %u", i);
		KUNIT_EXPECT_EQ_MSG(test, folio_test_unevictable(k->folios[i].folio), i == 1,
				    "folio %u", i);
		KUNIT_EXPECT_EQ_MSG(test, folio_ref_count(k->folios[i].folio), 1, "folio %u", i);
	}
	change_lru(test, &k->folios[1], folio_clear_mlocked);
	unmap_dirty(test);
}

/* A file of so many pages, mapped from @addr on, and each written to. */
static struct file *map_file_pages(struct kunit *test, unsigned long addr, unsigned int nr)
{
	struct file *file;
	unsigned int i;

	file = shmem_kernel_file_setup("mm_batch", nr * PAGE_SIZE, EMPTY_VMA_FLAGS);
	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	KUNIT_ASSERT_EQ(test, vm_mmap(file, addr, nr * PAGE_SIZE, PROT_READ | PROT_WRITE,
				      MAP_FIXED | MAP_SHARED, 0), addr);
	for (i = 0; i < nr; i++)
		KUNIT_ASSERT_EQ(test, put_user(1, (int __user *)(addr + i * PAGE_SIZE)), 0);
	lru_add_drain();
	return file;
}

/* Page @i of the file goes from the LRU lists to this one. */
static struct folio *isolate_page(struct kunit *test, struct file *file, unsigned int i,
				  struct list_head *folios)
{
	struct folio *folio = filemap_get_folio(file->f_mapping, i);

	KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
	KUNIT_ASSERT_EQ(test, folio_nr_pages(folio), 1);
	KUNIT_ASSERT_TRUE(test, folio_isolate_lru(folio));
	list_add_tail(&folio->lru, folios);
	folio_put(folio);
	return folio;
}

static void put_back_unlocked(struct list_head *folios)
{
	struct folio *folio, *next;

	list_for_each_entry_safe(folio, next, folios, lru) {
		folio_unlock(folio);
		folio_putback_lru(folio);
	}
}

static void put_file_pages(struct file *file)
{
	shmem_truncate_range(file_inode(file), 0, -1);
	fput(file);
}

/* The PTE of an address, with the lock of its page table. */
static pte_t *locked_pte(struct kunit *test, unsigned long addr, spinlock_t **ptl)
{
	pte_t *ptep = get_locked_pte(current->mm, addr, ptl);

	KUNIT_ASSERT_NOT_NULL(test, ptep);
	KUNIT_EXPECT_TRUE(test, pte_present(ptep_get(ptep)));
	return ptep;
}

/* What maps page @i of the file from this address on says that it was used, or not. */
static void set_young(struct kunit *test, unsigned long addr, unsigned int i, bool young)
{
	spinlock_t *ptl; /* the page table's */
	pte_t *ptep;

	addr += i * PAGE_SIZE;
	ptep = locked_pte(test, addr, &ptl);
	if (young)
		set_pte_at(current->mm, addr, ptep,
			   pte_mkyoung(ptep_get_and_clear(current->mm, addr, ptep)));
	else
		ptep_test_and_clear_young(vma_lookup(current->mm, addr), addr, ptep);
	pte_unmap_unlock(ptep, ptl);
}

/*
 * Three pages of a file: the first VMA maps them all, the second one page 1, the third one page 2,
 * where it was used. Two walks come by the first VMA, and none may pass the third one over.
 */
static void test_referenced_in_a_third_vma(struct kunit *test)
{
	const unsigned long vma[] = { SZ_1G, SZ_1G + PMD_SIZE, SZ_1G + 2 * PMD_SIZE };
	const unsigned int nr = ARRAY_SIZE(vma);
	struct folios_referenced found;
	struct folio *folio;
	struct file *file;
	LIST_HEAD(folios);
	unsigned int i;

	file = map_file_pages(test, vma[0], nr);
	for (i = 1; i < nr; i++) {
		KUNIT_ASSERT_EQ(test, vm_mmap(file, vma[i], (nr - i) * PAGE_SIZE,
					      PROT_READ | PROT_WRITE, MAP_FIXED | MAP_SHARED,
					      i * PAGE_SIZE), vma[i]);
		KUNIT_ASSERT_EQ(test, put_user(1, (int __user *)vma[i]), 0);
	}
	for (i = 0; i < nr; i++) {
		folio = isolate_page(test, file, i, &folios);
		KUNIT_ASSERT_EQ(test, folio_mapcount(folio), i ? 2 : 1);
		folio_lock(folio);
		set_young(test, vma[0], i, false);
		set_young(test, vma[i], 0, i == 2);
	}
	folios_referenced(&folios, NULL, &found);
	KUNIT_EXPECT_EQ(test, found.known, BIT(nr) - 1);
	for (i = 0; i < nr; i++)
		KUNIT_EXPECT_EQ_MSG(test, found.nr[i], i == 2, "page %u", i);

	put_back_unlocked(&folios);
	for (i = 0; i < nr; i++)
		vm_munmap(vma[i], PMD_SIZE);
	put_file_pages(file);
}

/* Where nobody asks for references, as of a file that is read once, young PTEs may go. */
static void test_unmap_without_recency(struct kunit *test)
{
	const unsigned int nr = 3;
	unsigned int i, sequential;

	for (sequential = 0; sequential < 2; sequential++) {
		struct file *file = map_file_pages(test, SZ_1G, nr);
		struct folios_referenced found;
		struct folio *folio[3];
		LIST_HEAD(folios);

		if (sequential)
			KUNIT_ASSERT_EQ(test, do_madvise(current->mm, SZ_1G, nr * PAGE_SIZE,
							 MADV_SEQUENTIAL), 0);
		for (i = 0; i < nr; i++) {
			folio[i] = isolate_page(test, file, i, &folios);
			folio_lock(folio[i]);
			set_young(test, SZ_1G, i, sequential);
		}
		folios_referenced(&folios, NULL, &found);
		KUNIT_EXPECT_EQ(test, found.known, BIT(nr) - 1);
		for (i = 0; i < nr; i++) {
			KUNIT_EXPECT_EQ_MSG(test, found.nr[i], 0, "page %u", i);
			set_young(test, SZ_1G, i, true);
		}
		try_to_unmap_folios(&folios, true, NULL);
		try_to_unmap_flush();
		for (i = 0; i < nr; i++)
			KUNIT_EXPECT_EQ_MSG(test, folio_mapped(folio[i]), !sequential,
					    "page %u", i);
		put_back_unlocked(&folios);
		vm_munmap(SZ_1G, PMD_SIZE);
		put_file_pages(file);
	}
}

/* Who has an rmap lock until another task waits for it. */
struct holder {
	struct anon_vma *anon_vma;
	struct task_struct *other;
	struct completion has;
	const struct dirty_folio *folios;
	unsigned int nr;
	/* Of the folios, then. */
	unsigned int nr_locked;
	bool waits;
};

#define HOLDS_MS	5000

static int hold_rmap_lock(void *data)
{
	struct holder *holder = data;
	unsigned int i, seen = 0;

	anon_vma_lock_write(holder->anon_vma);
	complete(&holder->has);
	/* A task that waits for a disk does not for so long. */
	for (i = 0; i < HOLDS_MS && seen < 50; i++) {
		usleep_range(1000, 2000);
		seen = READ_ONCE(holder->other->__state) == TASK_UNINTERRUPTIBLE ? seen + 1 : 0;
	}
	holder->waits = seen;
	for (i = 0; i < holder->nr; i++)
		holder->nr_locked += folio_test_locked(holder->folios[i].folio);
	anon_vma_unlock_write(holder->anon_vma);
	while (!kthread_should_stop())
		usleep_range(1000, 2000);
	return 0;
}

/* Who waits for an rmap lock has one folio locked. All are reclaimed in the end. */
static void test_contended(struct kunit *test)
{
	struct holder *holder = kunit_kzalloc(test, sizeof(*holder), GFP_KERNEL);
	struct dirty_flush_kunit *k = test->priv;
	const unsigned int nr = 10;
	struct task_struct *task;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, holder);
	mm_batch_folio_batch_set_mode(MM_BATCH_RUST);
	/* These have one lock, and each of the others has its own. */
	map_neighbours(test, nr);
	k->stride = 0;
	map_many_dirty(test, nr, 0, false);
	holder->other = current;
	holder->folios = k->folios;
	holder->nr = k->nr;
	holder->anon_vma = vma_lookup(current->mm, k->folios[0].addr)->anon_vma;
	init_completion(&holder->has);
	task = kthread_run(hold_rmap_lock, holder, "mm_batch_holder");
	stop_at_end(test, task);
	wait_for_completion(&holder->has);
	reclaim_list(test, k->folios, k->nr);

	KUNIT_EXPECT_TRUE(test, holder->waits);
	KUNIT_EXPECT_EQ(test, holder->nr_locked, 1);
	KUNIT_EXPECT_EQ(test, k->got.nr_reclaimed, k->nr);
	for (i = 0; i < k->nr; i++)
		KUNIT_EXPECT_TRUE_MSG(test, k->folios[i].freed, "folio %u", i);
	unmap_dirty(test);
}

/* Reclaims these of a file, where one of its operations is another. */
static void reclaim_by_other_aops(struct kunit *test, struct file *file,
				  const struct address_space_operations *other,
				  struct list_head *folios)
{
	const struct address_space_operations *before = file->f_mapping->a_ops;
	struct dirty_flush_kunit *k = test->priv;

	file->f_mapping->a_ops = other;
	k->reclaims = true;
	reclaim_pages(folios);
	k->reclaims = false;
	file->f_mapping->a_ops = before;
}

#define WATCHED	3

/* Whoever flushed in this mm is done when the last folio is told that its PTE was dirty. */
static bool dirty_folio_and_flushed(struct address_space *mapping, struct folio *folio)
{
	if (folio->index == WATCHED - 1)
		atomic_dec(&current->mm->tlb_flush_pending);
	return noop_dirty_folio(mapping, folio);
}

/*
 * Pages of a file, of which the second and third are PROT_NONE, as NUMA balancing makes them: they
 * count as accessible for as long as somebody flushes in the mm, and that ends among them. The
 * first one is flushed for in any case.
 */
static void test_flush_of_prot_none(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;
	struct address_space_operations *const aops =
		kunit_kzalloc(test, sizeof(*aops), GFP_KERNEL);
	struct folio *folio[WATCHED];
	unsigned long addr = SZ_1G;
	struct file *file;
	LIST_HEAD(folios);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, aops);
	mm_batch_folio_batch_set_mode(MM_BATCH_RUST);
	file = map_file_pages(test, addr, WATCHED);
	have_other_cpu(test);
	wait_for_other_cpu(k->other);
	for (i = 0; i < WATCHED; i++) {
		spinlock_t *ptl; /* the page table's */
		pte_t *ptep, pte;

		folio[i] = isolate_page(test, file, i, &folios);
		folio_lock(folio[i]);
		folio_clear_dirty(folio[i]);
		folio_unlock(folio[i]);
		ptep = locked_pte(test, addr + i * PAGE_SIZE, &ptl);
		pte = ptep_get(ptep);
		KUNIT_EXPECT_TRUE(test, pte_dirty(pte));
		if (i == 1)
			pte = pte_mkclean(pte);
		if (i)
			set_pte_at(current->mm, addr + i * PAGE_SIZE, ptep,
				   pte_modify(pte, PAGE_NONE));
		pte_unmap_unlock(ptep, ptl);
	}
	*aops = *file->f_mapping->a_ops;
	aops->dirty_folio = dirty_folio_and_flushed;
	atomic_inc(&current->mm->tlb_flush_pending);
	reclaim_by_other_aops(test, file, aops, &folios);
	KUNIT_EXPECT_EQ(test, atomic_read(&current->mm->tlb_flush_pending), 0);
	for (i = 0; i < WATCHED; i++)
		KUNIT_EXPECT_FALSE_MSG(test, folio_mapped(folio[i]), "page %u", i);
	if (IS_ENABLED(CONFIG_X86))
		KUNIT_EXPECT_EQ(test, k->got.nr_ipis, 1);

	vm_munmap(addr, WATCHED * PAGE_SIZE);
	put_file_pages(file);
}

#define FILES		4
#define MAPPINGS	200

struct batches {
	struct task_struct *task;
	unsigned int nr;
	unsigned long nr_pages[FILES];
};

static void note_folio_batch(void *data, enum mm_batch_run_path path, unsigned long nr_pages,
			     enum mm_batch_run_outcome outcome)
{
	struct batches *batches = data;

	if (current == batches->task && path == MM_BATCH_RUN_FOLIO_BATCH && batches->nr < FILES)
		batches->nr_pages[batches->nr++] = nr_pages;
}

/* A page each of several files, in 200 places: three of them are as much as a batch has. */
static void test_many_mappings(struct kunit *test)
{
	struct batches batches = { .task = current };
	struct file *file[FILES];
	LIST_HEAD(folios);
	unsigned int i, j;

	mm_batch_folio_batch_set_mode(MM_BATCH_RUST);
	for (i = 0; i < FILES; i++) {
		unsigned long addr = SZ_1G + i * PMD_SIZE;

		file[i] = map_file_pages(test, addr, 1);
		for (j = 1; j < MAPPINGS; j++) {
			addr += PAGE_SIZE;
			KUNIT_ASSERT_EQ(test, vm_mmap(file[i], addr, PAGE_SIZE,
						      PROT_READ | PROT_WRITE,
						      MAP_FIXED | MAP_SHARED, 0), addr);
			KUNIT_ASSERT_EQ(test, put_user(1, (int __user *)addr), 0);
		}
		KUNIT_EXPECT_EQ(test, folio_mapcount(isolate_page(test, file[i], 0, &folios)),
				MAPPINGS);
	}
	KUNIT_ASSERT_EQ(test, register_trace_mm_batch_run(note_folio_batch, &batches), 0);
	KUNIT_EXPECT_EQ(test, reclaim_pages(&folios), FILES);
	unregister_trace_mm_batch_run(note_folio_batch, &batches);
	tracepoint_synchronize_unregister();
	KUNIT_EXPECT_EQ(test, batches.nr, 2);
	KUNIT_EXPECT_EQ(test, batches.nr_pages[0], 3);
	KUNIT_EXPECT_EQ(test, batches.nr_pages[1], 1);
	for (i = 0; i < FILES; i++) {
		vm_munmap(SZ_1G + i * PMD_SIZE, MAPPINGS * PAGE_SIZE);
		put_file_pages(file[i]);
	}
}

static bool released, owed_when_released;

static bool release_and_note(struct folio *folio, gfp_t gfp)
{
	released = true;
	owed_when_released = current->tlb_ubc.flush_required;
	folio_detach_private(folio);
	return true;
}

/*
 * A large folio of a file, clean, with private data: it is unlocked before these go. A flush for
 * its PTEs may be owed then, but where PTEs that share a translation may be set in their place.
 */
static void test_release_of_large(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;
	struct address_space_operations *const aops =
		kunit_kzalloc(test, sizeof(*aops), GFP_KERNEL);
	struct dirty_folio *f;
	LIST_HEAD(folios);

	KUNIT_ASSERT_NOT_NULL(test, aops);
	mm_batch_folio_batch_set_mode(MM_BATCH_RUST);
	have_other_cpu(test);
	wait_for_other_cpu(k->other);
	f = map_dirty(test, ORDER, true);
	lru_add_drain();
	KUNIT_ASSERT_TRUE(test, folio_isolate_lru(f->folio));
	list_add(&f->folio->lru, &folios);
	folio_lock(f->folio);
	folio_mkclean(f->folio);
	folio_clear_dirty(f->folio);
	folio_attach_private(f->folio, k);
	folio_unlock(f->folio);
	*aops = *f->file->f_mapping->a_ops;
	aops->release_folio = release_and_note;
	released = false;
	reclaim_by_other_aops(test, f->file, aops, &folios);
	KUNIT_EXPECT_TRUE(test, released);
	KUNIT_EXPECT_EQ(test, owed_when_released, !ptes_need_break_before_make());
	KUNIT_EXPECT_TRUE(test, f->freed);
	unmap_dirty(test);
}

static struct kunit_case folio_batch_steps_cases[] = {
	KUNIT_CASE(test_isolate_unevictable),
	KUNIT_CASE(test_referenced_in_a_third_vma),
	KUNIT_CASE(test_unmap_without_recency),
	KUNIT_CASE(test_contended),
	KUNIT_CASE(test_flush_of_prot_none),
	KUNIT_CASE(test_many_mappings),
	KUNIT_CASE(test_release_of_large),
	{}
};

static struct kunit_suite folio_batch_steps_suite = {
	.name = "guest_mm_batch_folio_batch_steps",
	.suite_init = swap_suite_init,
	.init = steps_init,
	.exit = dirty_flush_exit,
	.test_cases = folio_batch_steps_cases,
};

kunit_test_suite(folio_batch_steps_suite);
