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
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest.h"

#ifndef MAP_DROPPABLE
#define MAP_DROPPABLE 0x08
#endif

#define KIB 1024ul
#define PAGE (4 * KIB)
#define FOLIO (64 * KIB)
#define PMD (2048 * KIB)
#define PAGES (FOLIO / PAGE)

#define PM_UFFD_WP (1ull << 57)
#define PM_SWAP (1ull << 62)
#define PM_PRESENT (1ull << 63)
#define KPF_COMPOUND_HEAD 15
#define KPF_COMPOUND_TAIL 16

#define CGROUPS "/sys/fs/cgroup"

static int pagemap_fd, kpageflags_fd;
static char cgroup[64];

static void write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		ksft_exit_fail_msg("%s: %s\n", path, strerror(errno));
	close(fd);
}

/* A cgroup of our own. */
static void leave_cgroup(void)
{
	int fd = open(CGROUPS "/cgroup.procs", O_WRONLY);

	if (fd < 0 || write(fd, "0", 1) != 1 || rmdir(cgroup))
		ksft_print_msg("%s is left behind: %s\n", cgroup, strerror(errno));
}

static void enter_cgroup(void)
{
	char procs[96];

	write_to(CGROUPS "/cgroup.subtree_control", "+memory");
	snprintf(cgroup, sizeof(cgroup), CGROUPS "/file_unmap.%d", getpid());
	if (mkdir(cgroup, 0755))
		ksft_exit_fail_msg("%s: %s\n", cgroup, strerror(errno));
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", cgroup);
	write_to(procs, "0");
	atexit(leave_cgroup);
}

/* @what: "0" is page cache and lazyfree memory, "max" is what is swapped. */
static void reclaim(const char *what)
{
	char path[96], text[64];
	int fd;

	snprintf(path, sizeof(path), "%s/memory.reclaim", cgroup);
	fd = open(path, O_WRONLY);
	snprintf(text, sizeof(text), "16M swappiness=%s", what);
	/* There are not as many; and a page that was used lately is passed over once. */
	for (int i = 0; i < 3; i++)
		if (fd < 0 || (write(fd, text, strlen(text)) < 0 && errno != EAGAIN))
			ksft_exit_fail_msg("%s: %s\n", path, strerror(errno));
	close(fd);
}

/* How many lazyfree pages reclaim has discarded. (The cgroup's own count may be late.) */
static unsigned long discarded(void)
{
	FILE *file = fopen("/proc/vmstat", "r");
	unsigned long pages = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "pglazyfreed %lu", &pages);
	if (!file || fclose(file))
		ksft_exit_fail_msg("/proc/vmstat: %s\n", strerror(errno));
	return pages;
}

static uint64_t pagemap(const char *at)
{
	uint64_t entry;

	if (pread(pagemap_fd, &entry, 8, (uintptr_t)at / PAGE * 8) != 8)
		ksft_exit_fail_msg("pagemap: %s\n", strerror(errno));
	return entry;
}

static unsigned int count(const char *from, unsigned int pages, uint64_t bits)
{
	unsigned int found = 0;

	for (unsigned int i = 0; i < pages; i++)
		found += !!(pagemap(from + i * PAGE) & bits);
	return found;
}

/* Whether one folio of 64 KiB is mapped from here on. */
static bool is_folio(const char *from)
{
	for (unsigned int i = 0; i < PAGES; i++) {
		uint64_t entry = pagemap(from + i * PAGE), flags;

		if (!(entry & PM_PRESENT) ||
		    pread(kpageflags_fd, &flags, 8, (entry & ((1ull << 55) - 1)) * 8) != 8 ||
		    !(flags >> (i ? KPF_COMPOUND_TAIL : KPF_COMPOUND_HEAD) & 1))
			return false;
	}
	return true;
}

/* Address space of four page tables, the first page table's end in it. */
static char *reserve(void)
{
	char *at = mmap(NULL, 4 * PMD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		ksft_exit_fail_msg("mmap: %s\n", strerror(errno));
	return (char *)(((uintptr_t)at + PMD - 1) / PMD * PMD);
}

static char *map(char *at, unsigned long size, int flags)
{
	at = mmap(at, size, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_FIXED | flags, -1, 0);
	if (at == MAP_FAILED)
		ksft_exit_fail_msg("mmap: %s\n", strerror(errno));
	return at;
}

static void fill(char *at, unsigned int pages, char with)
{
	for (unsigned int i = 0; i < pages; i++)
		memset(at + i * PAGE, with, PAGE);
}

static bool holds(const char *at, unsigned int pages, char what)
{
	for (unsigned int i = 0; i < pages; i++)
		if (at[i * PAGE] != what || at[i * PAGE + PAGE - 1] != what)
			return false;
	return true;
}

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
	before_reclaim = discarded();
	reclaim("0");
	gone = !count(folio, PAGES, PM_PRESENT | PM_SWAP) && discarded() - before_reclaim >= PAGES;
	ksft_test_result(gone && holds(folio, PAGES, 0) && holds(before, PAGES, 4) && holds(behind, PAGES, 5),
			 "a lazyfree folio across two page tables is discarded, and no more\n");
}

static int userfault(char *at, unsigned long size)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_WP_HUGETLBFS_SHMEM };
	struct uffdio_register reg = {
		.range = { (uintptr_t)at, size }, .mode = UFFDIO_REGISTER_MODE_WP,
	};
	int fd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &reg))
		ksft_exit_fail_msg("userfaultfd: %s\n", strerror(errno));
	return fd;
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
	fd = userfault(folio, FOLIO);
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
	pagemap_fd = open("/proc/self/pagemap", O_RDONLY);
	kpageflags_fd = open("/proc/kpageflags", O_RDONLY);
	if (pagemap_fd < 0 || kpageflags_fd < 0)
		ksft_exit_fail_msg("/proc: %s\n", strerror(errno));
	write_to("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled", "always");
	write_to("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/shmem_enabled", "always");

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
