// SPDX-License-Identifier: GPL-2.0
/*
 * Maps memory in folios of one size, has the cgroup's reclaim take a part of it, and
 * prints what that took.
 *
 *	reclaim KIND FOLIO_KIB MIB PERCENT FILE CGROUP [2cpu]
 *
 * KIND is file (FILE, on a file system with large folios), shmem, lazyfree, or a name
 * of these with -pte: PTEs map a folio that a PMD could. file-mixed: every second page
 * was written to through its mapping and is clean again, but soft-dirty. 2cpu: another
 * CPU has run in the same mm, and may have its translations. What is mapped is clean,
 * and was used before but not lately.
 *
 * Prints: RECLAIM <ns in try_to_unmap() per page> <ns in all> <idle ticks>.
 * Needs root, the meter, and to be started outside of CGROUP, which it enters.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "workload.h"

#define KIB 1024ul
#define MIB (1024ul * KIB)
#define PMD_SIZE (2 * MIB)
#define THP "/sys/kernel/mm/transparent_hugepage/"
#define METER "/sys/kernel/debug/mm_batch_meter/"
#define KPF_COMPOUND_HEAD 15
#define KPF_COMPOUND_TAIL 16

static unsigned long page, kib, size, pages;
static char *memory;

static void die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fprintf(stderr, "reclaim: ");
	vfprintf(stderr, format, arguments);
	fprintf(stderr, "\n");
	exit(1);
}

static void put(const char *path, const char *format, ...)
{
	va_list arguments;
	char text[64];
	int fd, length;

	va_start(arguments, format);
	length = vsnprintf(text, sizeof(text), format, arguments);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, text, length) != length)
		die("cannot write %s to %s (%s)", text, path, strerror(errno));
	close(fd);
}

/* Folios of @kib and of no other size, from now on. */
static void choose_folios(const char *name)
{
	for (unsigned long other = 8; other <= PMD_SIZE / KIB; other *= 2) {
		char path[128];

		snprintf(path, sizeof(path), THP "hugepages-%lukB/%s", other, name);
		/* Anonymous folios of two pages do not exist. */
		if (access(path, W_OK) && other == 8)
			continue;
		put(path, other == kib ? "always" : "never");
	}
}

/* Where a PMD may map it. */
static void map_memory(int prot, int flags, int fd)
{
	char *at = mmap(NULL, size + PMD_SIZE, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		die("no address space (%s)", strerror(errno));
	at = (char *)(((uintptr_t)at + PMD_SIZE - 1) / PMD_SIZE * PMD_SIZE);
	memory = mmap(at, size, prot, flags | MAP_FIXED, fd, 0);
	if (memory == MAP_FAILED)
		die("cannot map (%s)", strerror(errno));
}

/* The file anew, a folio per write, so that it comes in folios of that size; and on the disk. */
static int file(const char *path)
{
	char *folio = calloc(1, kib * KIB);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	for (unsigned long at = 0; folio && fd >= 0 && at < size; at += kib * KIB)
		if (write(fd, folio, kib * KIB) != (ssize_t)(kib * KIB))
			die("cannot write %s (%s)", path, strerror(errno));
	if (!folio || fd < 0 || fsync(fd))
		die("cannot make %s (%s)", path, strerror(errno));
	free(folio);
	return fd;
}

static void touch(void)
{
	for (unsigned long i = 0; i < pages; i++)
		asm volatile("" : : "r" (memory[i * page]));
}

static unsigned long long read_word(int fd, unsigned long long index)
{
	unsigned long long value;

	if (pread(fd, &value, sizeof(value), index * sizeof(value)) != sizeof(value))
		die("cannot read a page's word (%s)", strerror(errno));
	return value;
}

/* How much of the memory is mapped, in folios of @kib and no other. */
static unsigned long in_folios(void)
{
	int pagemap = open("/proc/self/pagemap", O_RDONLY);
	int flags = open("/proc/kpageflags", O_RDONLY);
	unsigned long want = kib * KIB / page, found = 0, run = 0;

	for (unsigned long i = 0; i <= pages; i++) {
		unsigned long long entry = 0, kpf = 0;

		if (i < pages)
			entry = read_word(pagemap, (uintptr_t)memory / page + i);
		if (entry >> 63)
			kpf = read_word(flags, entry & ((1ull << 55) - 1));
		if (kpf >> KPF_COMPOUND_TAIL & 1 && run) {
			run++;
			continue;
		}
		/* The folio before ended here. */
		found += run == want ? run : 0;
		run = entry >> 63;
	}
	close(pagemap);
	close(flags);
	return found;
}

static void *on_another_cpu(void *unused)
{
	stay_on(1);
	touch();
	pause();
	return unused;
}

/* A figure of the meter's. */
static double metered(const char *name)
{
	FILE *stats = fopen(METER "stats", "r");
	char found[64];
	double value;

	while (stats && fscanf(stats, "%63s %lf", found, &value) == 2) {
		if (!strcmp(found, name)) {
			fclose(stats);
			return value;
		}
	}
	die("the meter has no %s", name);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long percent, sized, before;
	unsigned long long start, ns;
	char path[256];
	bool pte, mixed;

	if (argc != 7 && !(argc == 8 && !strcmp(argv[7], "2cpu"))) {
		fprintf(stderr, "usage: reclaim KIND FOLIO_KIB MIB PERCENT FILE CGROUP [2cpu]\n");
		return 2;
	}
	page = sysconf(_SC_PAGESIZE);
	kib = strtoul(argv[2], NULL, 10);
	size = strtoul(argv[3], NULL, 10) * MIB;
	percent = strtoul(argv[4], NULL, 10);
	pages = size / page;
	pte = strstr(argv[1], "-pte");
	mixed = strstr(argv[1], "-mixed");

	/* The search for another CPU in the mm takes longer from the first one. */
	stay_on(0);
	snprintf(path, sizeof(path), "%s/cgroup.procs", argv[6]);
	put(path, "0");
	if (!strncmp(argv[1], "file", 4)) {
		int fd = file(argv[5]);

		map_memory(mixed ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd);
		if (pte && madvise(memory, size, MADV_NOHUGEPAGE))
			die("cannot keep PMDs away (%s)", strerror(errno));
		touch();
		for (unsigned long i = 0; mixed && i < pages; i += 2)
			memory[i * page] = 1;
		if (mixed && fsync(fd))
			die("cannot write back (%s)", strerror(errno));
	} else if (!strncmp(argv[1], "shmem", 5)) {
		choose_folios("shmem_enabled");
		map_memory(PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1);
		touch();
	} else {
		choose_folios("enabled");
		map_memory(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
		memset(memory, 1, size);
		/* A contiguous group of arm64's, all of it: C's batches end within one. */
		for (unsigned long at = 0; pte && at < size; at += PMD_SIZE)
			if (mprotect(memory + at, 64 * KIB, PROT_READ) ||
			    mprotect(memory + at, 64 * KIB, PROT_READ | PROT_WRITE))
				die("cannot split a PMD (%s)", strerror(errno));
		if (madvise(memory, size, MADV_FREE))
			die("cannot MADV_FREE (%s)", strerror(errno));
	}
	sized = in_folios();
	if (sized < pages / 100 * 95)
		die("%lu of %lu pages are in folios of %lu KiB, less than 95 %%",
		    sized, pages, kib);
	if (argc == 8) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, on_another_cpu, NULL))
			die("no thread");
		usleep(200000);
	}
	/* Not used lately: or reclaim would give all of it a second chance. */
	put("/proc/self/clear_refs", "1");

	snprintf(path, sizeof(path), "%s/memory.reclaim", argv[6]);
	put(METER "reset", "1");
	before = idle_ticks();
	start = now();
	put(path, "%lu", size / 100 * percent);
	ns = now() - start;
	before = idle_ticks() - before;
	if (metered("run_pages") < pages / 100 * percent)
		die("only %.0f pages were unmapped", metered("run_pages"));
	printf("RECLAIM %.3f %llu %lu\n", metered("ns_net") / metered("pages"), ns, before);
	return 0;
}
