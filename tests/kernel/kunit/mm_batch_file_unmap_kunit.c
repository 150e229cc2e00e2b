// SPDX-License-Identifier: GPL-2.0
/*
 * file_unmap in the running kernel: try_to_unmap() of large folios that a real mm
 * maps, in each mode. Which runs it takes, and that every count is exact afterwards.
 */

#include <trace/events/mm_batch.h>
#include "mm_batch_kunit.h"
#include "mm_batch_other_cpu_kunit.h"
#include "mm_batch_unmap_kunit.h"

KUNIT_ARRAY_PARAM_DESC(mode, modes, name);

/* So many pages are gone, in the runs that this mode is to find, and every count says so. */
static void gone(struct kunit *test, struct mapping *m, unsigned int nr, unsigned int left)
{
	bool anon = folio_test_anon(m->folio), shmem = !anon && folio_test_swapbacked(m->folio);
	struct runs want = expected_runs(m);
	int refs = folio_ref_count(m->folio);
	struct unmapped r = unmap(test, m, 0);

	KUNIT_EXPECT_EQ(test, r.runs.count, want.count);
	expect_runs(test, &r.runs, &want, want.count);
	KUNIT_EXPECT_EQ(test, r.anon, anon ? nr : 0);
	KUNIT_EXPECT_EQ(test, r.shmem, shmem ? nr : 0);
	KUNIT_EXPECT_EQ(test, r.file, anon || shmem ? 0 : nr);
	KUNIT_EXPECT_EQ(test, r.swap, 0);
	KUNIT_EXPECT_EQ(test, r.mapcount, left);
	KUNIT_EXPECT_EQ(test, refs - r.refs, nr);
	/* Told before anything went, and there was something. */
	KUNIT_EXPECT_GE(test, r.rss, nr);
	KUNIT_EXPECT_EQ(test, r.hiwater, r.rss);
	KUNIT_EXPECT_FALSE(test, r.pending);
}

/* Nothing is gone, and every count and every PTE's page say so. */
static struct unmapped stays(struct kunit *test, struct mapping *m)
{
	int refs = folio_ref_count(m->folio), mapped = folio_mapcount(m->folio);
	struct unmapped r = unmap(test, m, 0);
	unsigned int i;

	KUNIT_EXPECT_EQ(test, r.anon, 0);
	KUNIT_EXPECT_EQ(test, r.shmem, 0);
	KUNIT_EXPECT_EQ(test, r.file, 0);
	KUNIT_EXPECT_EQ(test, r.swap, 0);
	KUNIT_EXPECT_EQ(test, r.mapcount, mapped);
	KUNIT_EXPECT_EQ(test, r.refs, refs);
	for (i = 0; i < NR; i++)
		KUNIT_EXPECT_TRUE_MSG(test, maps_page(m, i), "PTE %u", i);
	return r;
}

/* In a page table, and half by each of two. */
static void test_whole(struct kunit *test)
{
	static const unsigned int befores[] = { NR, NR / 2, 3 * NR + 5 };
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(unmapped_kinds); i++) {
		for (j = 0; j < ARRAY_SIZE(befores); j++) {
			struct mapping m = map(test, unmapped_kinds[i], befores[j]);

			gone(test, &m, NR, 0);
			unmap_all(&m);
		}
	}
}

/*
 * A flush that is put off is pending in each mode, and is known to be for a dirty PTE if
 * any of the folio's is: the first, another, or none.
 */
static void deferred(struct kunit *test, struct other_cpu *other, enum kind kind, int dirty)
{
	struct mapping m = map(test, kind, NR);
	struct unmapped r;
	int i;

	for (i = 0; i < NR; i++) {
		pte_t pte = pte_mkclean(pte_at(&m, i));

		change_pte(&m, i, i == dirty ? pte_mkdirty(pte) : pte);
	}
	folio_clear_dirty(m.folio);
	flush_tlb_mm(m.mm);
	wait_for_other_cpu(other);
	r = unmap(test, &m, TTU_BATCH_FLUSH);
	KUNIT_EXPECT_TRUE(test, r.pending);
	KUNIT_EXPECT_EQ_MSG(test, r.pending_dirty, dirty >= 0, "kind %u, dirty %d", kind, dirty);
	/* Only what is lazyfree and dirty stays. */
	KUNIT_EXPECT_EQ(test, r.dirty, dirty >= 0);
	if (kind == KIND_LAZYFREE && dirty >= 0)
		KUNIT_EXPECT_GT(test, r.mapcount, 0);
	else
		KUNIT_EXPECT_EQ(test, r.mapcount, 0);
	/* On x86, what is put off tells no range, and nothing is flushed before PTEs come back. */
	if (IS_ENABLED(CONFIG_X86))
		KUNIT_EXPECT_EQ(test, r.runs.count, 0);
	unmap_all(&m);
}

static void test_deferred_flush(struct kunit *test)
{
	struct other_cpu *other = on_other_cpu(test);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(unmapped_kinds); i++) {
		deferred(test, other, unmapped_kinds[i], -1);
		deferred(test, other, unmapped_kinds[i], 0);
		deferred(test, other, unmapped_kinds[i], NR - 1);
	}
}

/* The VMA ends within the folio, which goes on in another one, the bits of all PTEs alike. */
static void test_vma_end(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(unmapped_kinds); i++) {
		struct mapping m = map(test, unmapped_kinds[i], NR);
		unsigned long end = m.addr + (NR - 3) * PAGE_SIZE;

		KUNIT_ASSERT_EQ(test, do_madvise(m.mm, end, 3 * PAGE_SIZE, MADV_DONTFORK), 0);
		KUNIT_ASSERT_EQ(test, vma_lookup(m.mm, m.addr)->vm_end, end);
		gone(test, &m, NR, 0);
		unmap_all(&m);
	}
}

/* The folio's mapping is cut short, and another file's pages go on behind it. */
static void test_cut_short(struct kunit *test)
{
	struct mapping m = map(test, KIND_SHMEM, NR), other;
	unsigned int i;

	vm_munmap(m.addr + (NR - 3) * PAGE_SIZE, 3 * PAGE_SIZE);
	other = map(test, KIND_SHMEM, 3);
	m.vma = vma_lookup(m.mm, m.addr);
	gone(test, &m, NR - 3, 0);
	for (i = 0; i < NR; i++)
		KUNIT_EXPECT_TRUE(test, pte_present(pte_at(&other, i)));
	unmap_all(&other);
	unmap_all(&m);
}

/* Holes: a page at the front, some in the middle, and one at a page table's end. */
static void test_holes(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(unmapped_kinds); i++) {
		struct mapping m = map(test, unmapped_kinds[i], NR / 2);

		mmap_read_lock(m.mm);
		zap_vma_range(m.vma, m.addr, PAGE_SIZE);
		zap_vma_range(m.vma, m.addr + 4 * PAGE_SIZE, 2 * PAGE_SIZE);
		zap_vma_range(m.vma, m.addr + (NR / 2) * PAGE_SIZE, PAGE_SIZE);
		mmap_read_unlock(m.mm);
		gone(test, &m, NR - 4, 0);
		unmap_all(&m);
	}
}

/* A private copy of one page is another folio, and stays. */
static void test_private_page(struct kunit *test)
{
	struct mapping m = map(test, KIND_SHMEM, NR);
	unsigned long private = SZ_1G + SZ_256M, got, i;
	char byte;

	got = vm_mmap(m.file, private, LENGTH, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE, 0);
	KUNIT_ASSERT_EQ(test, got, private);
	for (i = 0; i < NR; i++)
		KUNIT_ASSERT_EQ(test, get_user(byte, (char __user *)private + i * PAGE_SIZE), 0);
	KUNIT_ASSERT_EQ(test, put_user((char)2, (char __user *)private + 7 * PAGE_SIZE), 0);
	KUNIT_EXPECT_EQ(test, folio_mapcount(m.folio), 2 * NR - 1);
	gone(test, &m, 2 * NR - 1, 0);
	KUNIT_EXPECT_EQ(test, get_user(byte, (char __user *)private + 7 * PAGE_SIZE), 0);
	KUNIT_EXPECT_EQ(test, byte, 2);
	vm_munmap(private, LENGTH);
	unmap_all(&m);
}

static void set_flags(struct mapping *m, vm_flags_t set, vm_flags_t clear)
{
	mmap_write_lock(m->mm);
	vm_flags_mod(m->vma, set, clear);
	mmap_write_unlock(m->mm);
}

/* A locked VMA keeps its pages; one that is not lets go of the same folio's. */
static void test_mlocked(struct kunit *test)
{
	struct mapping m = map(test, KIND_SHMEM, NR);
	struct unmapped r;

	set_flags(&m, VM_LOCKED, 0);
	stays(test, &m);
	r = unmap(test, &m, TTU_IGNORE_MLOCK);
	KUNIT_EXPECT_EQ(test, r.mapcount, 0);
	KUNIT_EXPECT_EQ(test, r.shmem, NR);
	set_flags(&m, 0, VM_LOCKED);
	unmap_all(&m);
}

/* Written to since, or held: all stays mapped, and only the former is swap-backed again. */
static void test_lazyfree_kept(struct kunit *test)
{
	struct mapping m = map(test, KIND_LAZYFREE, NR);

	folio_get(m.folio);
	KUNIT_EXPECT_FALSE(test, stays(test, &m).swapbacked);
	folio_put(m.folio);
	KUNIT_ASSERT_EQ(test, put_user((char)3, (char __user *)m.addr), 0);
	KUNIT_EXPECT_TRUE(test, stays(test, &m).swapbacked);
	unmap_all(&m);
}

/* What is told to look for poison leaves runs to nobody, whether there is any or not. */
static void test_poison_is_one_by_one(struct kunit *test)
{
	struct mapping m = map(test, KIND_SHMEM, NR);
	struct unmapped r = unmap(test, &m, TTU_HWPOISON);

	KUNIT_EXPECT_EQ(test, r.mapcount, 0);
	KUNIT_EXPECT_EQ(test, r.runs.count, NR);
	unmap_all(&m);
}

/* Held, a folio that may be dropped stays as well, and is not swap-backed for being dirty. */
static void test_droppable_kept(struct kunit *test)
{
	struct mapping m = map(test, KIND_DROPPABLE, NR);
	struct unmapped r;

	folio_get(m.folio);
	r = stays(test, &m);
	KUNIT_EXPECT_TRUE(test, r.dirty);
	KUNIT_EXPECT_FALSE(test, r.swapbacked);
	folio_put(m.folio);
	gone(test, &m, NR, 0);
	unmap_all(&m);
}

/*
 * PTEs that are mapped again are not soft-dirty for it, though one of them was dirty:
 * pte_mkdirty(), by which bits of a run are merged, sets soft-dirty on some architectures.
 */
static void test_restored_soft_dirty(struct kunit *test)
{
	struct mapping m = map(test, KIND_LAZYFREE, NR);
	unsigned int i;

	for (i = 0; i < NR; i++) {
		pte_t pte = pte_at(&m, i);

		pte = i == 3 ? pte_mkdirty(pte) : pte_mkclean(pte);
		change_pte(&m, i, pte_clear_soft_dirty(pte));
	}
	flush_tlb_mm(m.mm);
	/* In "off", where the first PTE is clean, this keeps the folio. */
	folio_get(m.folio);
	stays(test, &m);
	folio_put(m.folio);
	for (i = 0; i < NR; i++)
		KUNIT_EXPECT_FALSE_MSG(test, pte_soft_dirty(pte_at(&m, i)), "PTE %u", i);
	unmap_all(&m);
}

/* Swap-backed, but not in the swap cache: nobody should ask, and is only warned. */
static void test_no_swap_cache(struct kunit *test)
{
	struct mapping m = map(test, KIND_ANON, NR);

	kunit_warning_suppress(test) {
		stays(test, &m);
		KUNIT_EXPECT_SUPPRESSED_WARNING_COUNT(test, IS_ENABLED(CONFIG_BUG));
	}
	unmap_all(&m);
}

struct traced {
	unsigned int count;
	unsigned long nr_pages;
	enum mm_batch_run_outcome outcome;
};

static void probe_mm_batch_run(void *data, enum mm_batch_run_path path, unsigned long nr_pages,
			       enum mm_batch_run_outcome outcome)
{
	struct traced *traced = data;

	if (path != MM_BATCH_RUN_FILE_UNMAP)
		return;
	traced->count++;
	traced->nr_pages = nr_pages;
	traced->outcome = outcome;
}

/* A run of Rust is traced, with its length and what became of it. */
static void test_traced(struct kunit *test)
{
	bool rust = mm_batch_file_unmap_mode() == MM_BATCH_RUST;
	struct mapping m = map(test, KIND_LAZYFREE, NR);
	struct traced traced = {};

	if (!IS_ENABLED(CONFIG_TRACEPOINTS))
		kunit_skip(test, "needs CONFIG_TRACEPOINTS");
	KUNIT_ASSERT_EQ(test, register_trace_mm_batch_run(probe_mm_batch_run, &traced), 0);
	folio_get(m.folio);
	stays(test, &m);
	folio_put(m.folio);
	KUNIT_EXPECT_EQ(test, traced.count, rust);
	if (rust) {
		KUNIT_EXPECT_EQ(test, traced.nr_pages, NR);
		KUNIT_EXPECT_EQ(test, traced.outcome, MM_BATCH_RUN_RESTORED);
	}
	unmap(test, &m, 0);
	KUNIT_EXPECT_EQ(test, traced.count, 2 * rust);
	if (rust) {
		KUNIT_EXPECT_EQ(test, traced.nr_pages, NR);
		KUNIT_EXPECT_EQ(test, traced.outcome, MM_BATCH_RUN_DONE);
	}
	unregister_trace_mm_batch_run(probe_mm_batch_run, &traced);
	tracepoint_synchronize_unregister();
	unmap_all(&m);
}

static struct kunit_case unmap_cases[] = {
	KUNIT_CASE_PARAM(test_whole, mode_gen_params),
	KUNIT_CASE_PARAM(test_deferred_flush, mode_gen_params),
	KUNIT_CASE_PARAM(test_vma_end, mode_gen_params),
	KUNIT_CASE_PARAM(test_cut_short, mode_gen_params),
	KUNIT_CASE_PARAM(test_holes, mode_gen_params),
	KUNIT_CASE_PARAM(test_private_page, mode_gen_params),
	KUNIT_CASE_PARAM(test_mlocked, mode_gen_params),
	KUNIT_CASE_PARAM(test_lazyfree_kept, mode_gen_params),
	KUNIT_CASE_PARAM(test_poison_is_one_by_one, mode_gen_params),
	KUNIT_CASE_PARAM(test_droppable_kept, mode_gen_params),
	KUNIT_CASE_PARAM(test_restored_soft_dirty, mode_gen_params),
	KUNIT_CASE_PARAM(test_no_swap_cache, mode_gen_params),
	KUNIT_CASE_PARAM(test_traced, mode_gen_params),
	{}
};

static enum mm_batch_mode unmap_mode_before;

static int unmap_init(struct kunit *test)
{
	const struct mode_param *param = test->param_value;

	unmap_mode_before = mm_batch_file_unmap_mode();
	mm_batch_file_unmap_set_mode(param->mode);
	return unmap_kunit_begin(test);
}

static void unmap_exit(struct kunit *test)
{
	unmap_kunit_end(test);
	mm_batch_file_unmap_set_mode(unmap_mode_before);
}

static struct kunit_suite unmap_suite = {
	.name = "mm_batch_file_unmap",
	.init = unmap_init,
	.exit = unmap_exit,
	.test_cases = unmap_cases,
};

kunit_test_suite(unmap_suite);
