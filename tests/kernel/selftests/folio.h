/* SPDX-License-Identifier: GPL-2.0 */
#ifndef FOLIO_H
#define FOLIO_H
/*
 * Folios of 64 KiB as a process sees them, and reclaim of them: for the selftests of
 * unmapping. Needs root, for the folio sizes; cgroup2 on /sys/fs/cgroup; and swap.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest.h"

#define KIB 1024ul
#define PAGE (4 * KIB)
#define FOLIO (64 * KIB)
#define PMD (2048 * KIB)
#define PAGES (FOLIO / PAGE)

#define PM_SOFT_DIRTY (1ull << 55)
#define PM_MMAP_EXCLUSIVE (1ull << 56)
#define PM_UFFD_WP (1ull << 57)
#define PM_SWAP (1ull << 62)
#define PM_PRESENT (1ull << 63)
#define KPF_COMPOUND_HEAD 15
#define KPF_COMPOUND_TAIL 16

#define CGROUPS "/sys/fs/cgroup"

static int pagemap_fd, kpageflags_fd;
static char cgroup[64];

/* The write may fail with @allowed. */
static inline void try_write_to(const char *path, const char *text, int allowed)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || (write(fd, text, strlen(text)) < 0 && errno != allowed))
		ksft_exit_fail_msg("%s: %s\n", path, strerror(errno));
	close(fd);
}

static inline void write_to(const char *path, const char *text)
{
	try_write_to(path, text, 0);
}

/* A number by its name in a file of such lines, or 0. */
static inline unsigned long number_of(const char *path, const char *name)
{
	FILE *file = fopen(path, "r");
	unsigned long number, found = 0;
	char this[64];

	while (file && fscanf(file, "%63s %lu", this, &number) == 2)
		if (!strcmp(this, name))
			found = number;
	if (!file || fclose(file))
		ksft_exit_fail_msg("%s: %s\n", path, strerror(errno));
	return found;
}

/* Where this thread may run from here on. */
static inline void run_on(const cpu_set_t *cpus)
{
	if (sched_setaffinity(0, sizeof(*cpus), cpus))
		ksft_exit_fail_msg("CPUs: %s\n", strerror(errno));
}

/* It runs on one CPU from here on. Returns where it might run before. */
static inline cpu_set_t stay_on(int cpu)
{
	cpu_set_t before, cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (sched_getaffinity(0, sizeof(before), &before))
		ksft_exit_fail_msg("CPUs: %s\n", strerror(errno));
	run_on(&cpus);
	return before;
}

/* (A cgroup's own may be late.) */
static inline unsigned long vmstat(const char *name)
{
	return number_of("/proc/vmstat", name);
}

/* A cgroup of our own. */
static inline void leave_cgroup(void)
{
	int fd = open(CGROUPS "/cgroup.procs", O_WRONLY);

	if (fd < 0 || write(fd, "0", 1) != 1 || rmdir(cgroup))
		ksft_print_msg("%s is left behind: %s\n", cgroup, strerror(errno));
}

static inline void enter_cgroup(void)
{
	char procs[96];

	write_to(CGROUPS "/cgroup.subtree_control", "+memory");
	snprintf(cgroup, sizeof(cgroup), CGROUPS "/unmap.%d", getpid());
	if (mkdir(cgroup, 0755))
		ksft_exit_fail_msg("%s: %s\n", cgroup, strerror(errno));
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", cgroup);
	write_to(procs, "0");
	atexit(leave_cgroup);
}

/* One write to memory.reclaim, which need not find as much. */
static inline void reclaim_once(const char *text)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/memory.reclaim", cgroup);
	try_write_to(path, text, EAGAIN);
}

/* @what: "0" is page cache and lazyfree memory, "max" is what is swapped. */
static inline void reclaim(const char *what)
{
	char text[64];

	snprintf(text, sizeof(text), "16M swappiness=%s", what);
	/* There are not as many; and a page that was used lately is passed over once. */
	for (int i = 0; i < 3; i++)
		reclaim_once(text);
}

static inline uint64_t pagemap(const char *at)
{
	uint64_t entry;

	if (pread(pagemap_fd, &entry, 8, (uintptr_t)at / PAGE * 8) != 8)
		ksft_exit_fail_msg("pagemap: %s\n", strerror(errno));
	return entry;
}

static inline unsigned int count(const char *from, unsigned int pages, uint64_t bits)
{
	unsigned int found = 0;

	for (unsigned int i = 0; i < pages; i++)
		found += !!(pagemap(from + i * PAGE) & bits);
	return found;
}

/* Whether one folio of 64 KiB is mapped from here on. */
static inline bool is_folio(const char *from)
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
static inline char *reserve(void)
{
	char *at = mmap(NULL, 4 * PMD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		ksft_exit_fail_msg("mmap: %s\n", strerror(errno));
	return (char *)(((uintptr_t)at + PMD - 1) / PMD * PMD);
}

static inline char *map(char *at, unsigned long size, int flags)
{
	at = mmap(at, size, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_FIXED | flags, -1, 0);
	if (at == MAP_FAILED)
		ksft_exit_fail_msg("mmap: %s\n", strerror(errno));
	return at;
}

static inline void fill(char *at, unsigned int pages, char with)
{
	for (unsigned int i = 0; i < pages; i++)
		memset(at + i * PAGE, with, PAGE);
}

static inline bool holds(const char *at, unsigned int pages, char what)
{
	for (unsigned int i = 0; i < pages; i++)
		if (at[i * PAGE] != what || at[i * PAGE + PAGE - 1] != what)
			return false;
	return true;
}

/* A userfaultfd with these features, and the memory registered with it. */
static inline int userfault(char *at, unsigned long size, uint64_t features, uint64_t mode)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };
	struct uffdio_register reg = { .range = { (uintptr_t)at, size }, .mode = mode };
	int fd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &reg))
		ksft_exit_fail_msg("userfaultfd: %s\n", strerror(errno));
	return fd;
}

/* What the helpers need, and folios of 64 KiB from now on. */
static inline void begin_folios(void)
{
	pagemap_fd = open("/proc/self/pagemap", O_RDONLY);
	kpageflags_fd = open("/proc/kpageflags", O_RDONLY);
	if (pagemap_fd < 0 || kpageflags_fd < 0)
		ksft_exit_fail_msg("/proc: %s\n", strerror(errno));
	write_to("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled", "always");
	write_to("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/shmem_enabled", "always");
}

#endif
