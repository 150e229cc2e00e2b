// SPDX-License-Identifier: GPL-2.0
/*
 * Maps anonymous memory in folios of one size and has it reclaimed.
 *
 *	pageout MIB FOLIO_KIB whole|split [zero|data [2cpu|<CPUS>writers]]
 *
 * whole: as it was faulted in, 2 MiB folios mapped by a PMD. split: one page of
 * every 2 MiB is made read-only and writable again first, so that each folio is
 * mapped by PTEs. zero: written with zeroes, which swap only notes. data: each word
 * differs. 2cpu: another CPU has run in the same mm, and may have its translations.
 * 16writers: each of 16 CPUs has written to all of the memory, and but for the first
 * goes on writing elsewhere in the same mm.
 *
 * Prints the nanoseconds in madvise(MADV_PAGEOUT), the pages, how many of them are
 * still mapped, and the first CPU's idle ticks. Needs root, for the folio sizes, and
 * swap.
 */

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
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
/* A contiguous group of arm64's: a part of one would end the kernel's batches there. */
#define GROUP (64 * KIB)

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void folio_file(char *path, size_t size, unsigned long kib, const char *name)
{
	snprintf(path, size, "/sys/kernel/mm/transparent_hugepage/hugepages-%lukB/%s", kib, name);
}

/* Folios of @kib and of no other size from now on; 4 is a page. */
static void choose_folios(unsigned long kib)
{
	for (unsigned long size = 8; size <= PMD_SIZE / KIB; size *= 2) {
		char path[128];
		FILE *file;

		folio_file(path, sizeof(path), size, "enabled");
		file = fopen(path, "w");
		/* Anonymous folios of two pages do not exist. */
		if (!file && size == 8)
			continue;
		if (!file || fputs(size == kib ? "always" : "never", file) < 0 || fclose(file))
			die(path);
	}
}

/* How many folios of @kib were faulted in since boot. */
static unsigned long folios(unsigned long kib)
{
	unsigned long count = 0;
	char path[128];
	FILE *file;

	folio_file(path, sizeof(path), kib, "stats/anon_fault_alloc");
	file = fopen(path, "r");
	if (!file || fscanf(file, "%lu", &count) != 1)
		die(path);
	fclose(file);
	return count;
}

static unsigned long mapped_pages(const char *memory, unsigned long pages)
{
	const unsigned long long present = 1ull << 63;
	unsigned long page = sysconf(_SC_PAGESIZE), count = 0;
	int pagemap = open("/proc/self/pagemap", O_RDONLY);
	unsigned long long entry;

	if (pagemap < 0)
		die("/proc/self/pagemap");
	for (unsigned long i = 0; i < pages; i++) {
		if (pread(pagemap, &entry, sizeof(entry),
			  ((uintptr_t)memory / page + i) * sizeof(entry)) != sizeof(entry))
			die("/proc/self/pagemap");
		count += !!(entry & present);
	}
	close(pagemap);
	return count;
}

static void *on_another_cpu(void *memory)
{
	stay_on(1);
	asm volatile("" : : "r" (*(volatile char *)memory));
	pause();
	return memory;
}

static unsigned long writers;
static struct memory {
	char *start;
	size_t size;
} written;
static pthread_barrier_t ready;

/*
 * Writes what is there, so that this CPU may have a writable translation of each page, and
 * then a word of its own now and then: a CPU that never sleeps would only keep the host's.
 */
static void *writer(void *cpu)
{
	size_t page = sysconf(_SC_PAGESIZE);
	unsigned long own = 0;

	stay_on((uintptr_t)cpu);
	for (size_t at = 0; at < written.size; at += page)
		__atomic_fetch_or(written.start + at, 0, __ATOMIC_RELAXED);
	pthread_barrier_wait(&ready);
	for (;;) {
		__atomic_fetch_add(&own, 1, __ATOMIC_RELAXED);
		usleep(2000);
	}
	return NULL;
}

static void start_writers(char *memory, size_t size)
{
	written = (struct memory){ memory, size };
	if (pthread_barrier_init(&ready, NULL, writers))
		die("pthread_barrier_init");
	for (uintptr_t cpu = 1; cpu < writers; cpu++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, writer, (void *)cpu))
			die("pthread_create");
	}
	pthread_barrier_wait(&ready);
}

static void fill(char *memory, size_t size, int data)
{
	unsigned long long *words = (void *)memory;

	if (!data) {
		memset(memory, 0, size);
		return;
	}
	for (size_t i = 0; i < size / sizeof(*words); i++)
		words[i] = (i + 1) * 0x9e3779b97f4a7c15;
}

int main(int argc, char **argv)
{
	unsigned long size, kib, before = 0, pages, left, idle;
	unsigned long page = sysconf(_SC_PAGESIZE);
	unsigned long long start, ns;
	pthread_t thread;
	char *memory, *end = "";
	int data, two;

	data = argc > 4 && !strcmp(argv[4], "data");
	two = argc > 5 && !strcmp(argv[5], "2cpu");
	if (argc > 5 && !two)
		writers = strtoul(argv[5], &end, 10);
	if (argc < 4 || argc > 6 || (strcmp(argv[3], "whole") && strcmp(argv[3], "split")) ||
	    (argc > 4 && !data && strcmp(argv[4], "zero")) ||
	    (argc > 5 && !two && (writers < 2 || strcmp(end, "writers")))) {
		fprintf(stderr, "usage: pageout MIB FOLIO_KIB whole|split %s\n",
			"[zero|data [2cpu|<CPUS>writers]]");
		return 2;
	}
	size = strtoul(argv[1], NULL, 10) * MIB;
	kib = strtoul(argv[2], NULL, 10);
	pages = size / page;

	/* The search for another CPU in the mm takes longer from the first one. */
	stay_on(0);
	choose_folios(kib);
	memory = mmap(NULL, size + PMD_SIZE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		die("mmap");
	memory = (char *)(((uintptr_t)memory + PMD_SIZE - 1) / PMD_SIZE * PMD_SIZE);

	if (kib * KIB > page)
		before = folios(kib);
	fill(memory, size, data);
	if (kib * KIB > page && folios(kib) - before != size / KIB / kib) {
		fprintf(stderr, "pageout: %lu folios of %lu KiB instead of %lu\n",
			folios(kib) - before, kib, size / KIB / kib);
		return 1;
	}
	for (unsigned long at = 0; !strcmp(argv[3], "split") && at < size; at += PMD_SIZE)
		if (mprotect(memory + at, GROUP, PROT_READ) ||
		    mprotect(memory + at, GROUP, PROT_READ | PROT_WRITE))
			die("mprotect");

	if (writers)
		start_writers(memory, size);
	if (two) {
		if (pthread_create(&thread, NULL, on_another_cpu, memory))
			die("pthread_create");
		usleep(200000);
	}

	idle = idle_ticks();
	start = now();
	if (madvise(memory, size, MADV_PAGEOUT))
		die("madvise");
	ns = now() - start;
	idle = idle_ticks() - idle;
	left = mapped_pages(memory, pages);
	printf("PAGEOUT %s %s ns %llu pages %lu left %lu idle %lu\n", argv[2], argv[3], ns, pages,
	       left, idle);
	return 0;
}
