// SPDX-License-Identifier: GPL-2.0
/*
 * Maps memory in folios of one size and has it reclaimed.
 *
 *	pageout MIB FOLIO_KIB whole|split [zero|data [2cpu|<CPUS>writers [FILE [CGROUP]]]]
 *
 * whole: as it was faulted in, 2 MiB folios mapped by a PMD. split: one page of
 * every 2 MiB is made read-only and writable again first, so that each folio is
 * mapped by PTEs. zero: written with zeroes, which swap only notes. data: each word
 * differs. 2cpu: another CPU has run in the same mm, and may have its translations.
 * 16writers: each of 16 CPUs has written to all of the memory, and but for the first
 * goes on writing elsewhere in the same mm. FILE: a shared mapping of it instead of
 * anonymous memory, in folios of whatever size, if it is not "-". CGROUP: entered first,
 * and reclaimed from by its memory.reclaim instead of MADV_PAGEOUT; anonymous memory is
 * cold then, as reclaim passes over what was used lately.
 *
 * Prints the nanoseconds in that, the pages, how many of them are still mapped, the
 * first CPU's idle ticks, and how often CPUs were interrupted to flush, for FILE until
 * all of it is written back. Needs root, for the folio sizes, and swap.
 */

#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include "folios.h"
#include "workload.h"

/* A contiguous group of arm64's: a part of one would end the kernel's batches there. */
#define GROUP (64 * KIB)

/* How many folios of @kib were faulted in since boot. */
static unsigned long folios(unsigned long kib)
{
	unsigned long count = 0;
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), THP "hugepages-%lukB/stats/anon_fault_alloc", kib);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%lu", &count) != 1)
		err(1, "%s", path);
	fclose(file);
	return count;
}

/* @size at @at of a file. */
static void map_file(const char *path, char *at, size_t size)
{
	int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	if (file < 0 || ftruncate(file, size) ||
	    mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED)
		err(1, "%s", path);
	close(file);
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
	start_threads(writers, &ready, writer);
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
	unsigned long page = sysconf(_SC_PAGESIZE), interrupts;
	unsigned long long start, ns;
	char *file, *group;
	pthread_t thread;
	char *memory, *end = "";
	int data, two;

	data = argc > 4 && !strcmp(argv[4], "data");
	two = argc > 5 && !strcmp(argv[5], "2cpu");
	if (argc > 5 && !two)
		writers = strtoul(argv[5], &end, 10);
	file = argc > 6 && strcmp(argv[6], "-") ? argv[6] : NULL;
	group = argc > 7 ? argv[7] : NULL;
	if (argc < 4 || argc > 8 || (strcmp(argv[3], "whole") && strcmp(argv[3], "split")) ||
	    (argc > 4 && !data && strcmp(argv[4], "zero")) ||
	    (argc > 5 && !two && (writers < 2 || strcmp(end, "writers")))) {
		fprintf(stderr, "usage: pageout MIB FOLIO_KIB whole|split %s\n",
			"[zero|data [2cpu|<CPUS>writers [FILE [CGROUP]]]]");
		return 2;
	}
	size = strtoul(argv[1], NULL, 10) * MIB;
	kib = strtoul(argv[2], NULL, 10);
	pages = size / page;

	/* The search for another CPU in the mm takes longer from the first one. */
	stay_on(0);
	choose_folios(kib, "enabled");
	memory = mmap(aligned_space(size), size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (memory == MAP_FAILED)
		err(1, "mmap");

	if (group)
		put_in(group, "cgroup.procs", 0);
	if (file)
		map_file(file, memory, size);
	else if (kib * KIB > page)
		before = folios(kib);
	fill(memory, size, data);
	if (!file && kib * KIB > page && folios(kib) - before != size / KIB / kib) {
		fprintf(stderr, "pageout: %lu folios of %lu KiB instead of %lu\n",
			folios(kib) - before, kib, size / KIB / kib);
		return 1;
	}
	for (unsigned long at = 0; !strcmp(argv[3], "split") && at < size; at += PMD_SIZE)
		if (mprotect(memory + at, GROUP, PROT_READ) ||
		    mprotect(memory + at, GROUP, PROT_READ | PROT_WRITE))
			err(1, "mprotect");

	if (writers)
		start_writers(memory, size);
	if (two) {
		if (pthread_create(&thread, NULL, on_another_cpu, memory))
			err(1, "pthread_create");
		usleep(200000);
	}

	if (group && !file && madvise(memory, size, MADV_COLD))
		err(1, "madvise");
	idle = idle_ticks();
	interrupts = vmstat(FLUSHED);
	start = now();
	if (group)
		put_in(group, "memory.reclaim", size);
	else if (madvise(memory, size, MADV_PAGEOUT))
		err(1, "madvise");
	ns = now() - start;
	idle = idle_ticks() - idle;
	left = mapped_pages("self", memory, pages);
	/* What is mapped yet has to be flushed for when it is written back. */
	if (file && msync(memory, size, MS_SYNC))
		err(1, "msync");
	interrupts = vmstat(FLUSHED) - interrupts;
	printf("PAGEOUT %s %s ns %llu pages %lu left %lu idle %lu interrupts %lu\n", argv[2],
	       argv[3], ns, pages, left, idle, interrupts);
	return 0;
}
