// SPDX-License-Identifier: GPL-2.0
/*
 * What unmapping a folio in runs of PTEs must leave: permissions after a reclaim that
 * failed, nothing beyond a page table, uffd-wp markers, and pages that may be dropped.
 *
 * Reclaim is that of a cgroup. MADV_PAGEOUT would not do: it leaves folios alone that are
 * mapped elsewhere, and splits those whose PTEs it does not find alike in one page table.
 *
 * Needs root, for the folio sizes; cgroup2 on /sys/fs/cgroup; and swap.
 */

#define _GNU_SOURCE
#include <sys/wait.h>

#include "folio.h"

#ifndef MAP_DROPPABLE
#define MAP_DROPPABLE 0x08
#endif

/*
 * Half of a lazyfree folio is mapped read-only, as a child shares it, and half writable. A page
 * that was written to keeps the folio; then each half must be what it was: a write to the
 * first must not reach the child.
 */
static void test_read_only_half(void)
{
	char *folio = map(reserve() + FOLIO, FOLIO, MAP_PRIVATE);
	int to_child[2], to_parent[2], status;
	bool kept, apart;
	char byte = 0;
	pid_t child;

	fill(folio, PAGES, 1);
	if (!is_folio(folio) || pipe(to_child) || pipe(to_parent))
		return ksft_test_result_fail("the read-only half of a lazyfree folio: no folio\n");
	madvise(folio, FOLIO / 2, MADV_DONTFORK);
	child = fork();
	if (!child) {
		/* Has the second half alone. */
		if (read(to_child[0], &byte, 1) != 1)
			_exit(1);
		_exit(!holds(folio + FOLIO / 2, PAGES / 2, 1));
	}
	madvise(folio, FOLIO / 2, MADV_DOFORK);
	if (madvise(folio, FOLIO, MADV_FREE))
		return ksft_test_result_fail("the read-only half of a lazyfree folio: MADV_FREE\n");
	folio[0] = 2;
	reclaim("0");
	kept = folio[0] == 2;
	/* These are the parent's own now, by a fault; if it could write without one, the child sees it. */
	fill(folio + FOLIO / 2, PAGES / 2, 3);
	if (write(to_child[1], &byte, 1) != 1)
		ksft_print_msg("the child is gone\n");
	apart = waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status);
	ksft_test_result(kept && apart, "the read-only half of a lazyfree folio stays read-only\n");
}

/* A folio that is mapped across the end of a page table, half by each. */
static void test_across_page_tables(void)
{
	char *space = reserve();
	char *folio = map(space + PMD / 2, FOLIO, MAP_PRIVATE), *moved = space + PMD - FOLIO / 2;
	/* Neighbours of other folios, before and behind. */
	char *before = map(moved - FOLIO, FOLIO, MAP_PRIVATE), *behind = map(moved + FOLIO, FOLIO, MAP_PRIVATE);
	unsigned long before_reclaim;
	bool was, gone;

	fill(folio, PAGES, 1);
	fill(before, PAGES, 4);
	fill(behind, PAGES, 5);
	/* Before the move: MADV_FREE, too, splits a folio that is not in one page table. */
	was = is_folio(folio) && !madvise(folio, FOLIO, MADV_FREE);
	folio = mremap(folio, FOLIO, FOLIO, MREMAP_MAYMOVE | MREMAP_FIXED, moved);
	if (!was || folio != moved || !is_folio(folio))
		return ksft_test_result_fail("a folio across two page tables: no folio\n");
	before_reclaim = vmstat("pglazyfreed");
	reclaim("0");
	gone = !count(folio, PAGES, PM_PRESENT | PM_SWAP) && vmstat("pglazyfreed") - before_reclaim >= PAGES;
	ksft_test_result(gone && holds(folio, PAGES, 0) && holds(before, PAGES, 4) && holds(behind, PAGES, 5),
			 "a lazyfree folio across two page tables is discarded, and no more\n");
}

/* The pages [@first, @first + @nr) of a shmem folio are write-protected: those have markers, and no others. */
static void test_uffd_wp(const char *name, unsigned int first, unsigned int nr)
{
	char *folio = map(reserve() + FOLIO, FOLIO, MAP_SHARED);
	struct uffdio_writeprotect wp = {
		.range = { (uintptr_t)folio + first * PAGE, nr * PAGE },
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};
	unsigned int marked = 0, wrong = 0;
	bool gone, back;
	int fd;

	fill(folio, PAGES, 1);
	if (!is_folio(folio))
		return ksft_test_result_fail("uffd-wp, %s: no folio\n", name);
	fd = userfault(folio, FOLIO, UFFD_FEATURE_WP_HUGETLBFS_SHMEM, UFFDIO_REGISTER_MODE_WP);
	if (nr && ioctl(fd, UFFDIO_WRITEPROTECT, &wp))
		return ksft_test_result_fail("uffd-wp, %s: %s\n", name, strerror(errno));
	reclaim("max");
	gone = !count(folio, PAGES, PM_PRESENT);
	for (unsigned int i = 0; i < PAGES; i++) {
		bool wants = i >= first && i < first + nr;
		bool has = pagemap(folio + i * PAGE) & PM_UFFD_WP;

		marked += has;
		wrong += has != wants;
	}
	back = holds(folio, PAGES, 1);
	for (unsigned int i = 0; i < PAGES; i++)
		wrong += !!(pagemap(folio + i * PAGE) & PM_UFFD_WP) != (i >= first && i < first + nr);
	close(fd);
	if (wrong || !gone)
		ksft_print_msg("%u marked, %u wrong, %s\n", marked, wrong, gone ? "all gone" : "not gone");
	ksft_test_result(gone && back && !wrong && marked == nr, "uffd-wp on shmem, %s\n", name);
}

/* Pages that may be dropped are, though they are dirty. */
static void test_droppable(void)
{
	char *folio = mmap(reserve() + FOLIO, FOLIO, PROT_READ | PROT_WRITE,
			   MAP_ANONYMOUS | MAP_DROPPABLE | MAP_FIXED, -1, 0);

	if (folio == MAP_FAILED)
		return ksft_test_result_fail("a droppable folio: %s\n", strerror(errno));
	fill(folio, PAGES, 1);
	if (!is_folio(folio))
		return ksft_test_result_fail("a droppable folio: no folio\n");
	reclaim("0");
	ksft_test_result(!count(folio, PAGES, PM_PRESENT | PM_SWAP) && holds(folio, PAGES, 0),
			 "a droppable folio is dropped\n");
}

int main(void)
{
	ksft_print_header();
	ksft_set_plan(7);
	begin_folios();
	enter_cgroup();
	test_read_only_half();
	test_across_page_tables();
	test_uffd_wp("no PTE", 0, 0);
	test_uffd_wp("the first PTE", 0, 1);
	test_uffd_wp("some PTEs", 3, 7);
	test_uffd_wp("all PTEs", 0, PAGES);
	test_droppable();
	ksft_finished();
}
