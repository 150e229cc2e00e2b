// SPDX-License-Identifier: GPL-2.0
/*
 * What anon_unmap calls in mm's headers, by itself: how long a batch of pages is that are as
 * exclusive as the first, which pages lose that flag, and what swap entries are written.
 */

#include <linux/leafops.h>
#include <linux/swapfile.h>
#include "mm_batch_unmap_kunit.h"

/* Which pages of a folio are exclusive: one bit each. */
static const u16 patterns[] = {
	0x0000, 0xffff, 0x0001, 0x8000, 0x7fff, 0xfffe, 0xaaaa, 0x5555, 0x00ff, 0x3c1d,
};

static void set_exclusive(struct folio *folio, u16 which)
{
	unsigned int i;

	for (i = 0; i < NR; i++) {
		if (which & BIT(i))
			SetPageAnonExclusive(folio_page(folio, i));
		else
			ClearPageAnonExclusive(folio_page(folio, i));
	}
}

static u16 exclusive(struct folio *folio)
{
	u16 which = 0;
	unsigned int i;

	for (i = 0; i < NR; i++)
		which |= PageAnonExclusive(folio_page(folio, i)) ? BIT(i) : 0;
	return which;
}

/* @nr pages from @first on. */
static u16 part(unsigned int first, unsigned int nr)
{
	return (BIT(nr) - 1) << first;
}

/* Up to the first page that is otherwise, and never beyond what is asked about. */
static void test_exclusive_batch(struct kunit *test)
{
	struct mapping m = map(test, KIND_ANON, NR);
	unsigned int i, first, max, nr, want;

	for (i = 0; i < ARRAY_SIZE(patterns); i++) {
		set_exclusive(m.folio, patterns[i]);
		for (first = 0; first < NR; first++) {
			struct page *page = folio_page(m.folio, first);
			bool is = patterns[i] & BIT(first);

			for (max = 1; max <= NR - first; max++) {
				want = 1;
				while (want < max && !(patterns[i] & BIT(first + want)) == !is)
					want++;
				nr = page_anon_exclusive_batch(0, max, page, is);
				KUNIT_EXPECT_EQ_MSG(test, nr, want, "of %#x, %u from %u on",
						    patterns[i], max, first);
				/* As mprotect() asks. */
				nr = page_anon_exclusive_batch(first, max, &m.folio->page, is);
				KUNIT_EXPECT_EQ(test, nr, want);
			}
		}
	}
	set_exclusive(m.folio, 0xffff);
	unmap_all(&m);
}

/* Only the pages that are named, of which it is one with a PTE of its own. */
static void test_share_ptes(struct kunit *test)
{
	struct mapping m = map(test, KIND_ANON, NR);
	unsigned int first, nr;
	struct page *pinned;

	for (first = 0; first < NR; first++) {
		struct page *page = folio_page(m.folio, first);

		for (nr = 1; nr <= NR - first; nr++) {
			set_exclusive(m.folio, 0xffff);
			folio_share_anon_rmap_ptes(m.folio, page, nr);
			KUNIT_EXPECT_EQ(test, exclusive(m.folio), (u16)~part(first, nr));
		}
		set_exclusive(m.folio, 0xffff);
		KUNIT_EXPECT_EQ(test, folio_try_share_anon_rmap_pte(m.folio, page), 0);
		KUNIT_EXPECT_EQ(test, exclusive(m.folio), (u16)~part(first, 1));
	}
	/* And none if any is pinned. */
	set_exclusive(m.folio, 0xffff);
	KUNIT_ASSERT_EQ(test, pin_user_pages_fast(m.addr, 1, 0, &pinned), 1);
	KUNIT_EXPECT_FALSE(test, folio_may_share_anon_rmap(m.folio));
	KUNIT_EXPECT_EQ(test, folio_try_share_anon_rmap_pte(m.folio, folio_page(m.folio, 7)),
			-EBUSY);
	KUNIT_EXPECT_EQ(test, exclusive(m.folio), 0xffff);
	unpin_user_page(pinned);
	KUNIT_EXPECT_TRUE(test, folio_may_share_anon_rmap(m.folio));
	unmap_all(&m);
}

/*
 * A folio that is mapped by a PMD has the flag in its first page alone, and of it alone it is
 * taken. None is mapped here: the folio is made anonymous by hand.
 */
static void test_share_pmd(struct kunit *test)
{
	struct mapping m = map(test, KIND_ANON, NR);
	static const unsigned int tails[] = { 1, 2, NR, HPAGE_PMD_NR - 1 };
	struct folio *folio = folio_alloc(GFP_KERNEL | __GFP_COMP, HPAGE_PMD_ORDER);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, folio);
	/* An anon_vma that lives as long as this. */
	folio->mapping = m.folio->mapping;
	SetPageAnonExclusive(&folio->page);
	for (i = 0; i < ARRAY_SIZE(tails); i++)
		SetPageAnonExclusive(folio_page(folio, tails[i]));
	KUNIT_EXPECT_EQ(test, folio_try_share_anon_rmap_pmd(folio, &folio->page), 0);
	KUNIT_EXPECT_FALSE(test, PageAnonExclusive(&folio->page));
	for (i = 0; i < ARRAY_SIZE(tails); i++) {
		KUNIT_EXPECT_TRUE_MSG(test, PageAnonExclusive(folio_page(folio, tails[i])),
				      "page %u", tails[i]);
		ClearPageAnonExclusive(folio_page(folio, tails[i]));
	}
	folio->mapping = NULL;
	folio_put(folio);
	unmap_all(&m);
}

/* What set_swp_ptes() is to write: the bits of a PTE that was, and of its page. */
struct bits {
	bool soft_dirty, uffd, exclusive;
};

static pte_t swp_pte(swp_entry_t entry, const struct bits *bits)
{
	pte_t old = pfn_pte(1, PAGE_READONLY);

	old = bits->soft_dirty ? pte_mksoft_dirty(old) : pte_clear_soft_dirty(old);
	if (bits->uffd)
		old = pte_mkuffd(old);
	return swp_pte_prepare(entry, old, bits->exclusive);
}

/* PTEs [@first, @first + @nr) of a page table become entries, and none again. */
static void expect_swp_ptes(struct kunit *test, unsigned long table, unsigned int first,
			    unsigned int nr, swp_entry_t entry, const struct bits *bits)
{
	unsigned int i, wrong = 0, others = 0;
	swp_entry_t own;
	spinlock_t *ptl; /* the page table's */
	pte_t *ptep;

	ptep = get_locked_pte(current->mm, table, &ptl);
	KUNIT_ASSERT_NOT_NULL(test, ptep);
	set_swp_ptes(current->mm, table + first * PAGE_SIZE, ptep + first,
		     swp_pte(entry, bits), nr);
	for (i = 0; i < PTRS_PER_PTE; i++) {
		pte_t pte = ptep_get(ptep + i);

		if (i < first || i >= first + nr) {
			others += !pte_none(pte);
			continue;
		}
		own.val = entry.val + i - first;
		wrong += !pte_same(pte, swp_pte(own, bits)) ||
			 softleaf_from_pte(pte).val != own.val;
	}
	for (i = 0; i < PTRS_PER_PTE; i++)
		pte_clear(current->mm, table + i * PAGE_SIZE, ptep + i);
	pte_unmap_unlock(ptep, ptl);
	KUNIT_EXPECT_EQ_MSG(test, wrong, 0, "%u entries of offset %#lx", nr, swp_offset(entry));
	KUNIT_EXPECT_EQ(test, others, 0);
}

/* Of folios of each size, at offsets of small and large swap devices: each page has its slot. */
static void test_swp_ptes(struct kunit *test)
{
	unsigned long max = generic_max_swapfile_size();
	unsigned long table = place(PTRS_PER_PTE), got, offsets[6];
	unsigned int size, i, j;

	/* set_ptes() clears PTE_CONT of whatever it writes: bit 40 of an offset. */
	if (IS_ENABLED(CONFIG_ARM64_CONTPTE))
		max = min(max, 1UL << 40);
	got = vm_mmap(NULL, table, PMD_SIZE, PROT_READ | PROT_WRITE,
		      MAP_FIXED | MAP_NORESERVE | MAP_PRIVATE, 0);
	KUNIT_ASSERT_EQ(test, got, table);
	for (size = 1; size <= PTRS_PER_PTE; size *= 2) {
		offsets[0] = size;
		offsets[1] = 3 * PTRS_PER_PTE;
		offsets[2] = max / 2;
		offsets[3] = max / 2 - PTRS_PER_PTE;
		offsets[4] = round_down(max / 3, size);
		/* The very last one is a none PTE on x86. */
		offsets[5] = max - 2 * PTRS_PER_PTE;
		for (i = 0; i < ARRAY_SIZE(offsets); i++) {
			for (j = 0; j < 8; j++) {
				struct bits bits = { j & 1, j & 2, j & 4 };
				swp_entry_t entry = swp_entry(j % 3, offsets[i]);
				/* All of a folio, and what is left of it behind some pages. */
				unsigned int skip = min(j, size - 1);

				expect_swp_ptes(test, table, 0, size, entry, &bits);
				entry.val += skip;
				expect_swp_ptes(test, table, PTRS_PER_PTE - size, size - skip,
						entry, &bits);
			}
		}
	}
	vm_munmap(table, PMD_SIZE);
}

/* What mprotect() changes at once has one dirty bit and one young bit, and loses neither. */
static void test_modify_prot(struct kunit *test)
{
	static const unsigned int which[] = { 0, 7, NR - 1 };
	struct mapping m = map(test, KIND_ANON, NR);
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(which); i++) {
		spinlock_t *ptl; /* the page table's */
		pte_t *ptep, old;

		for (j = 0; j < NR; j++) {
			pte_t pte = pte_mkold(pte_mkclean(pte_at(&m, j)));

			if (j == which[i])
				pte = pte_mkyoung(pte_mkdirty(pte));
			change_pte(&m, j, pte_clear_soft_dirty(pte));
		}
		ptep = get_locked_pte(m.mm, m.addr, &ptl);
		KUNIT_ASSERT_NOT_NULL(test, ptep);
		old = modify_prot_start_ptes(m.vma, m.addr, ptep, NR);
		modify_prot_commit_ptes(m.vma, m.addr, ptep, old, old, NR);
		pte_unmap_unlock(ptep, ptl);
		flush_tlb_mm(m.mm);
		for (j = 0; j < NR; j++) {
			pte_t pte = pte_at(&m, j);

			KUNIT_EXPECT_TRUE_MSG(test, pte_dirty(pte), "page %u", j);
			KUNIT_EXPECT_TRUE_MSG(test, pte_young(pte), "page %u", j);
			KUNIT_EXPECT_FALSE_MSG(test, pte_soft_dirty(pte), "page %u", j);
		}
	}
	unmap_all(&m);
}

static struct kunit_case anon_parts_cases[] = {
	KUNIT_CASE(test_exclusive_batch),
	KUNIT_CASE(test_share_ptes),
	KUNIT_CASE(test_share_pmd),
	KUNIT_CASE(test_swp_ptes),
	KUNIT_CASE(test_modify_prot),
	{}
};

static struct kunit_suite anon_parts_suite = {
	.name = "mm_batch_anon_unmap_parts",
	.init = unmap_kunit_begin,
	.exit = unmap_kunit_end,
	.test_cases = anon_parts_cases,
};

kunit_test_suite(anon_parts_suite);
