// SPDX-License-Identifier: GPL-2.0
/*
 * anon_unmap in the running kernel: try_to_unmap() of large anonymous folios that a real mm
 * maps and that have swap slots, in each mode. What becomes of each PTE, page and slot, that
 * every count is exact, and that what is swapped can be read again.
 */

#include "mm_batch_anon_unmap_kunit.h"
#include "../swap_table.h"

/* In a page table, and by each of two. */
static void test_swap_whole(struct kunit *test)
{
	static const unsigned int befores[] = { NR, NR / 2, 1, 3 * NR + 5 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(befores); i++) {
		struct mapping m = map_with_slots(test, befores[i]);

		goes(test, &m, 0);
		expect_content(test, &m);
		unmap_with_slots(&m);
	}
}

/* Exclusive pages and others, in sub-batches of each length and at each end. */
static void test_swap_sub_batches(struct kunit *test)
{
	static const u16 shared[] = {
		0xffff, 0x0001, 0x8000, 0xaaaa, 0x5555, 0x00ff, 0xff00, 0x7ffe, 0x3c1d,
	};
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(shared); i++) {
		struct mapping m = map_with_slots(test, i % 2 ? NR : NR / 2);

		for (j = 0; j < NR; j++) {
			/* Or the write bit would end runs. */
			change_pte(&m, j, pte_wrprotect(pte_at(&m, j)));
			if (shared[i] & BIT(j))
				share(&m, j);
		}
		goes(test, &m, 0);
		expect_content(test, &m);
		unmap_with_slots(&m);
	}
}

/* Holes end runs; the folio is partially mapped, and all that is left of it goes. */
static void test_swap_holes(struct kunit *test)
{
	struct mapping m = map_with_slots(test, NR);
	unsigned int i;

	mmap_read_lock(m.mm);
	for (i = 0; i < NR; i += 5)
		zap_vma_range(m.vma, m.addr + i * PAGE_SIZE, PAGE_SIZE);
	mmap_read_unlock(m.mm);
	goes(test, &m, 0);
	unmap_with_slots(&m);
}

/* Two VMAs, within one page table. */
static void test_swap_two_vmas(struct kunit *test)
{
	struct mapping m = map_with_slots(test, NR);
	unsigned long end = m.addr + (NR - 3) * PAGE_SIZE;

	KUNIT_ASSERT_EQ(test, do_madvise(m.mm, end, 3 * PAGE_SIZE, MADV_DONTFORK), 0);
	KUNIT_ASSERT_EQ(test, vma_lookup(m.mm, m.addr)->vm_end, end);
	goes(test, &m, 0);
	expect_content(test, &m);
	unmap_with_slots(&m);
}

/* Reads each page again, in a VMA that userfaultfd has in its hands. */
static void refault(struct kunit *test, struct mapping *m, vm_flags_t uffd)
{
	unsigned int i;

	mmap_write_lock(m->mm);
	vm_flags_set(m->vma, uffd);
	for (i = 0; i < NR; i++) {
		if (!pte_present(pte_at(m, i)))
			KUNIT_EXPECT_EQ(test, handle_mm_fault(m->vma, m->addr + i * PAGE_SIZE, 0,
							      NULL) & VM_FAULT_ERROR, 0);
	}
	vm_flags_clear(m->vma, uffd);
	mmap_write_unlock(m->mm);
}

/* The faults have made PTEs with what there was before the folio went. */
static void expect_refaulted(struct kunit *test, struct mapping *m, const struct swapped *before)
{
	struct swapped r;
	unsigned int i;

	look(m, &r);
	for (i = 0; i < NR; i++) {
		const struct page_state *was = &before->pages[i], *got = &r.pages[i];

		KUNIT_EXPECT_TRUE_MSG(test, got->mapped, "page %u", i);
		KUNIT_EXPECT_EQ_MSG(test, got->soft_dirty, was->soft_dirty, "page %u", i);
		KUNIT_EXPECT_EQ_MSG(test, got->uffd, was->uffd, "page %u", i);
		KUNIT_EXPECT_EQ_MSG(test, got->protnone, was->protnone, "page %u", i);
		KUNIT_EXPECT_EQ_MSG(test, got->exclusive, was->exclusive, "page %u", i);
		KUNIT_EXPECT_EQ_MSG(test, got->count, was->count, "page %u", i);
	}
}

/* What a PTE says besides its page: in its entry, and again in the PTE that a fault makes. */
static void test_swap_bits(struct kunit *test)
{
	struct mapping m = map_with_slots(test, NR);
	struct swapped before;
	unsigned int i;

	for (i = 0; i < NR; i++) {
		pte_t pte = pte_wrprotect(pte_mkclean(pte_at(&m, i)));

		pte = i % 4 < 2 ? pte_mksoft_dirty(pte) : pte_clear_soft_dirty(pte);
		if (i & 4)
			pte = pte_mkuffd(pte);
		change_pte(&m, i, pte);
		if (i & 8)
			share(&m, i);
	}
	look(&m, &before);
	goes(test, &m, 0);
	refault(test, &m, VM_UFFD_WP);
	expect_refaulted(test, &m, &before);
	expect_content(test, &m);
	unmap_with_slots(&m);
}

/* As userfaultfd RWP leaves memory: not to be used at all, and marked; and so it comes back. */
static void test_swap_rwp(struct kunit *test)
{
	struct mapping m = map_with_slots(test, NR);
	struct swapped before;
	unsigned int i;

	for (i = 0; i < NR; i++)
		change_pte(&m, i, pte_mkuffd(pte_modify(pte_at(&m, i), PAGE_NONE)));
	look(&m, &before);
	goes(test, &m, 0);
	if (IS_ENABLED(CONFIG_USERFAULTFD_RWP)) {
		refault(test, &m, VM_UFFD_RWP);
		expect_refaulted(test, &m, &before);
	}
	unmap_with_slots(&m);
}

/* Slots that have almost as many entries as fit: the count goes on in a table of its own. */
static void test_swap_full_counts(struct kunit *test)
{
	struct mapping m = map_with_slots(test, NR);
	unsigned int i, n;

	folio_lock(m.folio);
	for (i = 3; i < NR; i += 4) {
		for (n = 0; n < 13 + i / 4 % 2; n++)
			KUNIT_EXPECT_EQ(test, folio_dup_swap(m.folio, folio_page(m.folio, i)), 0);
	}
	folio_unlock(m.folio);
	goes(test, &m, 0);
	folio_lock(m.folio);
	for (i = 3; i < NR; i += 4) {
		for (n = 0; n < 13 + i / 4 % 2; n++)
			folio_put_swap(m.folio, folio_page(m.folio, i));
	}
	folio_unlock(m.folio);
	expect_content(test, &m);
	unmap_with_slots(&m);
}

/* Slots that have more entries than fit already. */
static void test_swap_many_counts(struct kunit *test)
{
	struct mapping m = map_with_slots(test, NR);
	const unsigned int many = SWP_TB_COUNT_MAX + 2;
	unsigned int i, n;

	folio_lock(m.folio);
	for (i = 0; i < NR; i += 5) {
		for (n = 0; n < many; n++)
			KUNIT_EXPECT_EQ(test, folio_dup_swap(m.folio, folio_page(m.folio, i)), 0);
	}
	folio_unlock(m.folio);
	swap_out(test, &m, 0);
	folio_lock(m.folio);
	for (i = 0; i < NR; i += 5) {
		for (n = 0; n < many; n++) {
			KUNIT_EXPECT_NE_MSG(test, page_state(&m, i).count, 0, "page %u", i);
			folio_put_swap(m.folio, folio_page(m.folio, i));
		}
	}
	folio_unlock(m.folio);
	for (i = 0; i < NR; i++)
		KUNIT_EXPECT_EQ_MSG(test, page_state(&m, i).count, 1, "page %u", i);
	expect_content(test, &m);
	unmap_with_slots(&m);
}

/* Of which no page is exclusive, a folio is not asked for pins: it cannot have been pinned. */
static void test_swap_shared(struct kunit *test)
{
	struct mapping m = map_with_slots(test, NR);
	unsigned int i;

	for (i = 0; i < NR; i++)
		share(&m, i);
	goes(test, &m, 0);
	expect_content(test, &m);
	unmap_with_slots(&m);
}

/* The mode "c" is there if a batch in C is. If not, nothing is changed. */
static void test_swap_mode_c(struct kunit *test)
{
	bool in_c = anon_modes[1].mode == MM_BATCH_C;
	enum mm_batch_mode mode = mm_batch_anon_unmap_mode();

	kunit_warning_suppress(test) {
		mm_batch_anon_unmap_set_mode(MM_BATCH_C);
		KUNIT_EXPECT_SUPPRESSED_WARNING_COUNT(test, IS_ENABLED(CONFIG_BUG) && !in_c);
	}
	KUNIT_EXPECT_EQ(test, mm_batch_anon_unmap_mode(), in_c ? MM_BATCH_C : mode);
}

static struct kunit_case anon_unmap_cases[] = {
	KUNIT_CASE_PARAM(test_swap_whole, anon_mode_gen_params),
	KUNIT_CASE_PARAM(test_swap_sub_batches, anon_mode_gen_params),
	KUNIT_CASE_PARAM(test_swap_shared, anon_mode_gen_params),
	KUNIT_CASE_PARAM(test_swap_holes, anon_mode_gen_params),
	KUNIT_CASE_PARAM(test_swap_two_vmas, anon_mode_gen_params),
	KUNIT_CASE_PARAM(test_swap_bits, anon_mode_gen_params),
	KUNIT_CASE_PARAM(test_swap_rwp, anon_mode_gen_params),
	KUNIT_CASE_PARAM(test_swap_full_counts, anon_mode_gen_params),
	KUNIT_CASE_PARAM(test_swap_many_counts, anon_mode_gen_params),
	KUNIT_CASE_PARAM(test_swap_mode_c, anon_mode_gen_params),
	{}
};

static struct kunit_suite anon_unmap_suite = {
	.name = "guest_mm_batch_anon_unmap",
	.suite_init = swap_suite_init,
	.init = anon_unmap_init,
	.exit = anon_unmap_exit,
	.test_cases = anon_unmap_cases,
};

kunit_test_suite(anon_unmap_suite);
