// SPDX-License-Identifier: GPL-2.0
/*
 * file_unmap in Rust against C: what try_to_unmap() leaves of large folios whose PTEs have
 * their bits by chance, with the named difference on and off.
 *
 * The difference changes which PTEs make a run, and so how many runs there are. What is
 * left is the same.
 */

#include <linux/prandom.h>
#include "mm_batch_unmap_kunit.h"

struct mixed_param {
	const char *name;
	bool mixed_file_runs;
};

static const struct mixed_param mixed[] = {
	{ "none", false },
	{ "mixed_file_runs", true },
};

KUNIT_ARRAY_PARAM_DESC(mixed, mixed, name);

/* A case: all that chance decides is decided by the seed. */
struct draw {
	enum kind kind;
	unsigned int before;
	bool uffd_wp, held;
	u64 seed;
};

/* Give each PTE bits by chance, and some holes. */
static void shape(struct mapping *m, const struct draw *draw)
{
	struct rnd_state rnd;
	u32 dirty, young, write, soft, wp, holes;
	bool uniform;
	unsigned int i;

	prandom_seed_state(&rnd, draw->seed);
	dirty = prandom_u32_state(&rnd) % 4 ? 0 : prandom_u32_state(&rnd);
	young = prandom_u32_state(&rnd);
	write = prandom_u32_state(&rnd) | prandom_u32_state(&rnd);
	soft = prandom_u32_state(&rnd) | prandom_u32_state(&rnd);
	wp = prandom_u32_state(&rnd) & prandom_u32_state(&rnd);
	holes = prandom_u32_state(&rnd) & prandom_u32_state(&rnd) & prandom_u32_state(&rnd);
	uniform = prandom_u32_state(&rnd) % 2;

	for (i = 0; i < NR; i++) {
		pte_t pte;

		if (holes & BIT(i)) {
			zap_vma_range(m->vma, m->addr + i * PAGE_SIZE, PAGE_SIZE);
			continue;
		}
		pte = pte_at(m, i);
		pte = pte_mkold(pte_mkclean(pte));
		if (!uniform && !(write & BIT(i)))
			pte = pte_wrprotect(pte);
		if (dirty & BIT(i))
			pte = pte_mkdirty(pte);
		/* pte_mkdirty() may have set it. */
		pte = pte_clear_soft_dirty(pte);
		if (uniform || soft & BIT(i))
			pte = pte_mksoft_dirty(pte);
		if (young & BIT(i))
			pte = pte_mkyoung(pte);
		if (draw->uffd_wp && (uniform || wp & BIT(i)))
			pte = pte_mkuffd(pte);
		change_pte(m, i, pte);
	}
	folio_clear_dirty(m->folio);
	flush_tlb_mm(m->mm);
}

/* Unmaps in that mode, in a VMA that userfaultfd has registered or not. */
static struct unmapped run(struct kunit *test, enum mm_batch_mode mode, const struct draw *draw)
{
	struct mapping m = map(test, draw->kind, draw->before);
	bool file = draw->kind == KIND_FILE || draw->kind == KIND_SHMEM;
	struct unmapped r;
	struct runs want;

	mmap_write_lock(m.mm);
	if (draw->uffd_wp)
		vm_flags_set(m.vma, VM_UFFD_WP);
	mmap_write_unlock(m.mm);
	mmap_read_lock(m.mm);
	shape(&m, draw);
	mmap_read_unlock(m.mm);
	if (draw->held)
		folio_get(m.folio);
	mm_batch_file_unmap_set_mode(mode);
	want = expected_runs(&m);
	r = unmap(test, &m, 0);
	/* A folio that is kept ends the walk. */
	if (file || !r.mapcount)
		KUNIT_EXPECT_EQ(test, r.runs.count, want.count);
	else
		KUNIT_EXPECT_LE(test, r.runs.count, want.count);
	expect_runs(test, &r.runs, &want, r.runs.count);
	if (file)
		KUNIT_EXPECT_EQ(test, r.mapcount, 0);
	if (draw->held)
		folio_put(m.folio);
	mmap_write_lock(m.mm);
	vm_flags_clear(m.vma, VM_UFFD_WP);
	mmap_write_unlock(m.mm);
	unmap_all(&m);
	return r;
}

static void expect_same(struct kunit *test, const struct unmapped *a, const struct unmapped *b)
{
	unsigned int i;

	for (i = 0; i < NR; i++)
		KUNIT_EXPECT_EQ_MSG(test, a->ptes[i], b->ptes[i], "PTE %u", i);
	KUNIT_EXPECT_EQ(test, a->file, b->file);
	KUNIT_EXPECT_EQ(test, a->anon, b->anon);
	KUNIT_EXPECT_EQ(test, a->shmem, b->shmem);
	KUNIT_EXPECT_EQ(test, a->swap, b->swap);
	KUNIT_EXPECT_EQ(test, a->mapcount, b->mapcount);
	KUNIT_EXPECT_EQ(test, a->refs, b->refs);
	KUNIT_EXPECT_EQ(test, a->dirty, b->dirty);
	KUNIT_EXPECT_EQ(test, a->swapbacked, b->swapbacked);
}

static const unsigned int befores[] = { NR, NR / 2, 1, NR + 5 };

/* What so many draws came to, so that a test that met nothing fails. */
struct seen {
	unsigned int c_runs, rust_runs, gone, kept, partly;
};

static void as_c(struct kunit *test, const enum kind *kinds, unsigned int nr, struct seen *seen)
{
	unsigned int i;

	for (i = 0; i < 128; i++) {
		struct draw draw = {
			.kind = kinds[i % nr],
			.before = befores[i / 2 % ARRAY_SIZE(befores)],
			.uffd_wp = i & 8,
			.held = i % 5 == 0,
			.seed = i,
		};
		struct unmapped c, rust;

		c = run(test, MM_BATCH_C, &draw);
		rust = run(test, MM_BATCH_RUST, &draw);
		expect_same(test, &c, &rust);
		seen->c_runs += c.runs.count;
		seen->rust_runs += rust.runs.count;
		seen->gone += !rust.mapcount;
		seen->kept += rust.mapcount && rust.runs.count == 1;
		seen->partly += rust.mapcount && rust.runs.count > 1;
	}
	kunit_info(test, "%u runs in C, %u in Rust; %u gone, %u kept, %u in part", seen->c_runs,
		   seen->rust_runs, seen->gone, seen->kept, seen->partly);
}

static void test_file_as_c(struct kunit *test)
{
	static const enum kind kinds[] = { KIND_FILE, KIND_SHMEM };
	const struct mixed_param *param = test->param_value;
	struct seen seen = {};

	as_c(test, kinds, ARRAY_SIZE(kinds), &seen);
	if (param->mixed_file_runs == MIXED_IN_C)
		KUNIT_EXPECT_EQ(test, seen.rust_runs, seen.c_runs);
	else if (MIXED_IN_C)
		KUNIT_EXPECT_GT(test, seen.rust_runs, seen.c_runs);
	else
		KUNIT_EXPECT_LT(test, seen.rust_runs, seen.c_runs);
}

static void test_lazyfree_as_c(struct kunit *test)
{
	static const enum kind kinds[] = { KIND_LAZYFREE, KIND_DROPPABLE };
	struct seen seen = {};

	as_c(test, kinds, ARRAY_SIZE(kinds), &seen);
	KUNIT_EXPECT_EQ(test, seen.rust_runs, seen.c_runs);
	KUNIT_EXPECT_GT(test, seen.gone, 0);
	KUNIT_EXPECT_GT(test, seen.kept, 0);
	KUNIT_EXPECT_GT(test, seen.partly, 0);
}

static struct kunit_case as_c_cases[] = {
	KUNIT_CASE_PARAM(test_file_as_c, mixed_gen_params),
	KUNIT_CASE_PARAM(test_lazyfree_as_c, mixed_gen_params),
	{}
};

static enum mm_batch_mode mode_before_as_c;
static bool mixed_before;

static int as_c_init(struct kunit *test)
{
	const struct mixed_param *param = test->param_value;

	mode_before_as_c = mm_batch_file_unmap_mode();
	mixed_before = mm_batch_file_unmap_mixed_file_runs;
	WRITE_ONCE(mm_batch_file_unmap_mixed_file_runs, param->mixed_file_runs);
	return unmap_kunit_begin(test);
}

static void as_c_exit(struct kunit *test)
{
	unmap_kunit_end(test);
	WRITE_ONCE(mm_batch_file_unmap_mixed_file_runs, mixed_before);
	mm_batch_file_unmap_set_mode(mode_before_as_c);
}

static struct kunit_suite as_c_suite = {
	.name = "mm_batch_file_unmap_as_c",
	.init = as_c_init,
	.exit = as_c_exit,
	.test_cases = as_c_cases,
};

kunit_test_suite(as_c_suite);
