// SPDX-License-Identifier: GPL-2.0
/*
 * folio_pte_batch_flags() in Rust and in C, on page tables filled by chance, which nobody
 * else has: the same length of each run.
 */

#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/mm_batch.h>
#include <linux/prandom.h>
#include <linux/rmap.h>
#include "../internal.h"

#define TABLES	6000
#define ADDRESS	SZ_1G		/* of a page table's first entry */
#define TABLE_ORDER	1	/* behind it PTEs that no run may go on to */

/* What made a run end; a run of one PTE is counted by itself. */
enum end { LONE, FOLIO, TABLE, VMA, PTE, NR_ENDS };

static const char * const end_names[] = {
	[LONE] = "that are one PTE long",
	[FOLIO] = "to the folio's end",
	[TABLE] = "to the page table's end",
	[VMA] = "to the VMA's end",
	[PTE] = "to a PTE that is not of it",
};

struct context {
	struct rnd_state rnd;
	pte_t *table;
	struct folio *folios[3];
	unsigned int ends[NR_ENDS];
};

/* A run to look for: from the PTE of @index, which maps the folio's page @idx, on. */
struct start {
	struct folio *folio;
	unsigned int idx, index;
	struct vm_area_struct vma;
};

static unsigned int below(struct context *c, unsigned int limit)
{
	return prandom_u32_state(&c->rnd) % limit;
}

static bool chance(struct context *c, unsigned int one_in)
{
	return !below(c, one_in);
}

static const vm_flags_t protections[] = {
	VM_READ | VM_WRITE | VM_SHARED, VM_READ | VM_WRITE | VM_EXEC | VM_SHARED, VM_READ, VM_NONE,
};

/* One bit or frame that no run goes over, whatever is respected. */
static pte_t odd(struct context *c, pte_t pte)
{
	switch (below(c, 6)) {
	case 0:
		return __pte(0);
	case 1:
		return pte_mkspecial(pte);
	case 2:
		return pte_mkuffd(pte);
	case 3:
		return pte_modify(pte, vm_get_page_prot(VM_NONE));
	case 4:
		return pte_modify(pte, vm_get_page_prot(VM_READ));
	default:
		return pte_advance_pfn(pte, 1 + below(c, 3));
	}
}

/* PTEs of the folio's pages and on beyond its end, and beyond the page table's. */
static void fill(struct context *c, const struct start *s)
{
	pgprot_t prot = vm_get_page_prot(protections[below(c, ARRAY_SIZE(protections))]);
	pte_t pte = pfn_pte(folio_pfn(s->folio) + s->idx, prot);
	/* Once in so many PTEs; the bits in common else. */
	unsigned int wp = 2 + below(c, 64), soft = 2 + below(c, 64), dirty = 2 + below(c, 64);
	unsigned int strange = 8 << below(c, 8), i;
	bool writable = chance(c, 2), shared_soft = chance(c, 2), shared_dirty = chance(c, 2);

	if (chance(c, 8))
		pte = pte_mkuffd(pte);
	memset(c->table, 0, PAGE_SIZE << TABLE_ORDER);
	for (i = s->index; i < PTRS_PER_PTE << TABLE_ORDER; i++, pte = pte_advance_pfn(pte, 1)) {
		pte_t made = pte;

		if (writable != chance(c, wp))
			made = pte_mkwrite_novma(made);
		else
			made = pte_wrprotect(made);
		made = shared_dirty != chance(c, dirty) ? pte_mkdirty(made) : pte_mkclean(made);
		made = pte_clear_soft_dirty(made);
		if (shared_soft != chance(c, soft))
			made = pte_mksoft_dirty(made);
		made = chance(c, 2) ? pte_mkyoung(made) : pte_mkold(made);
		if (i > s->index && chance(c, strange))
			made = odd(c, made);
		c->table[i] = made;
	}
}

static struct start begin(struct context *c)
{
	struct start s = { .folio = c->folios[below(c, ARRAY_SIZE(c->folios))] };
	unsigned long end;

	s.idx = chance(c, 2) ? 0 : below(c, folio_nr_pages(s.folio));
	s.index = chance(c, 2) ? below(c, PTRS_PER_PTE) : PTRS_PER_PTE - 1 - below(c, 20);
	s.vma.vm_start = ADDRESS;
	/* Within the page table, far beyond, or as far as 32 bits do not count. */
	if (chance(c, 3))
		end = s.index + 1 + below(c, PTRS_PER_PTE - s.index);
	else
		end = chance(c, 2) ? 4 * PTRS_PER_PTE : s.index + BIT_ULL(32);
	s.vma.vm_end = ADDRESS + end * PAGE_SIZE;
	return s;
}

static enum end end_of(const struct start *s, unsigned int nr)
{
	if (nr == 1)
		return LONE;
	if (s->idx + nr == folio_nr_pages(s->folio))
		return FOLIO;
	if (s->vma.vm_end == ADDRESS + (s->index + nr) * PAGE_SIZE)
		return VMA;
	return s->index + nr == PTRS_PER_PTE ? TABLE : PTE;
}

static void compare(struct kunit *test, struct context *c, struct start *s, fpb_t flags)
{
	unsigned long addr = ADDRESS + s->index * PAGE_SIZE;
	unsigned int max_nr = (pmd_addr_end(addr, s->vma.vm_end) - addr) >> PAGE_SHIFT;
	pte_t *ptep = c->table + s->index, pte = *ptep;
	struct page_vma_mapped_walk pvmw = {
		.nr_pages = folio_nr_pages(s->folio), .vma = &s->vma, .address = addr,
		.pte = ptep,
	};
	unsigned int in_c, in_rust;

	in_c = folio_pte_batch_flags(s->folio, &s->vma, ptep, &pte, max_nr, flags);
	in_rust = mm_batch_folio_pte_batch_kunit(s->folio, folio_page(s->folio, s->idx), &pvmw,
						 pte_val(*ptep), flags & FPB_RESPECT_WRITE,
						 flags & FPB_RESPECT_SOFT_DIRTY);
	KUNIT_ASSERT_EQ_MSG(test, in_rust, in_c, "PTE %u of page %u, flags %x: %llx, then %llx",
			    s->index, s->idx, (__force unsigned int)flags, (u64)pte_val(*ptep),
			    s->index + in_c < PTRS_PER_PTE ? (u64)pte_val(ptep[in_c]) : 0);
	c->ends[end_of(s, in_c)]++;
}

static void test_as_c(struct kunit *test)
{
	struct context *c = test->priv;
	unsigned int i, respect;

	for (i = 0; i < TABLES; i++) {
		struct start s = begin(c);

		fill(c, &s);
		for (respect = 0; respect < 4; respect++) {
			fpb_t flags = 0;

			flags |= respect & 1 ? FPB_RESPECT_WRITE : 0;
			flags |= respect & 2 ? FPB_RESPECT_SOFT_DIRTY : 0;
			compare(test, c, &s, flags);
		}
		cond_resched();
	}
	for (i = 0; i < NR_ENDS; i++) {
		kunit_info(test, "%u runs %s", c->ends[i], end_names[i]);
		KUNIT_EXPECT_GT(test, c->ends[i], 1000);
	}
}

static struct kunit_case pte_batch_cases[] = {
	KUNIT_CASE(test_as_c),
	{}
};

static void free_table(void *table)
{
	free_pages((unsigned long)table, TABLE_ORDER);
}

static void put_folio(void *folio)
{
	folio_put(folio);
}

static int pte_batch_init(struct kunit *test)
{
	static const unsigned int orders[] = { 2, 4, 9 };
	struct context *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, c);
	prandom_seed_state(&c->rnd, 7);
	c->table = (pte_t *)__get_free_pages(GFP_KERNEL, TABLE_ORDER);
	KUNIT_ASSERT_NOT_NULL(test, c->table);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, free_table, c->table), 0);
	for (i = 0; i < ARRAY_SIZE(orders); i++) {
		c->folios[i] = folio_alloc(GFP_KERNEL, orders[i]);
		KUNIT_ASSERT_NOT_NULL(test, c->folios[i]);
		KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, put_folio, c->folios[i]), 0);
	}
	test->priv = c;
	return 0;
}

static struct kunit_suite pte_batch_suite = {
	.name = "mm_batch_folio_pte_batch",
	.init = pte_batch_init,
	.test_cases = pte_batch_cases,
};

kunit_test_suite(pte_batch_suite);
