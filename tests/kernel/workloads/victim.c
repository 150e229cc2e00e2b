// SPDX-License-Identifier: GPL-2.0
/*
 * What reclaim costs those who do something else: threads that read at random over
 * memory which nobody reclaims, while another thread's memory is reclaimed.
 *
 *	victim MIB CPUS pageout|CGROUP
 *
 * The first CPU's thread fills MIB of memory, in folios of 4 KiB, and gives it to
 * MADV_PAGEOUT; or it has CGROUP, which all of this enters, reclaim as much by its
 * memory.reclaim. A thread on each other CPU reads all the while, from memory that is
 * locked. The same is measured for a second before, with a first thread that only
 * counts: so that all CPUs are busy in both.
 *
 * Prints how many reads there were per millisecond before and meanwhile, how often CPUs
 * were interrupted to flush, and how many pages were reclaimed. Needs root, and swap.
 */

#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include "folios.h"
#include "workload.h"

#define OWN (16 * MIB)
#define MOST 64

static char *own;
/* Each in a cache line of its own. */
static struct victim {
	unsigned long reads;
	char rest[56];
} victims[MOST];
static pthread_barrier_t ready;

/* Each reads what it read last to know where to read next. */
static void *victim(void *cpu)
{
	struct victim *this = &victims[(uintptr_t)cpu];
	unsigned long at = (uintptr_t)cpu * 4096 + 1;

	stay_on((uintptr_t)cpu);
	pthread_barrier_wait(&ready);
	for (;;) {
		for (int i = 0; i < 256; i++) {
			at = at * 6364136223846793005ul + 1442695040888963407ul;
			at ^= __atomic_load_n(own + (at >> 20) % OWN, __ATOMIC_RELAXED);
		}
		__atomic_store_n(&this->reads, this->reads + 256, __ATOMIC_RELAXED);
	}
	return NULL;
}

static unsigned long all_reads(unsigned long cpus)
{
	unsigned long sum = 0;

	for (unsigned long cpu = 1; cpu < cpus; cpu++)
		sum += __atomic_load_n(&victims[cpu].reads, __ATOMIC_RELAXED);
	return sum;
}

static char *map_filled(size_t size)
{
	char *memory;

	choose_folios(4, "enabled");
	memory = mmap(aligned_space(size), size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (memory == MAP_FAILED)
		err(1, "no memory");
	for (size_t i = 0; i < size / sizeof(long); i++)
		((unsigned long *)memory)[i] = (i + 1) * 0x9e3779b97f4a7c15;
	return memory;
}

int main(int argc, char **argv)
{
	unsigned long cpus, pages, interrupts, before, reads;
	unsigned long long start, ns;
	unsigned long idle = 0;
	const char *group = NULL;
	double alone, meanwhile;
	char *memory;
	size_t size;

	cpus = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
	if (cpus < 2 || cpus > MOST) {
		fprintf(stderr, "usage: victim MIB CPUS pageout|CGROUP\n");
		return 2;
	}
	size = strtoul(argv[1], NULL, 10) * MIB;
	pages = size / sysconf(_SC_PAGESIZE);
	if (strcmp(argv[3], "pageout"))
		group = argv[3];

	stay_on(0);
	if (group)
		put_in(group, "cgroup.procs", 0);
	own = map_filled(OWN);
	if (mlock(own, OWN))
		err(1, "mlock");
	memory = map_filled(size);
	start_threads(cpus, &ready, victim);

	reads = all_reads(cpus);
	start = now();
	while (now() - start < 1000000000ull)
		__atomic_fetch_add(&idle, 1, __ATOMIC_RELAXED);
	alone = (all_reads(cpus) - reads) * 1e6 / (now() - start);

	interrupts = vmstat(FLUSHED);
	before = mapped_pages("self", memory, pages);
	reads = all_reads(cpus);
	start = now();
	if (group)
		put_in(group, "memory.reclaim", size);
	else if (madvise(memory, size, MADV_PAGEOUT))
		err(1, "madvise");
	ns = now() - start;
	meanwhile = (all_reads(cpus) - reads) * 1e6 / ns;
	interrupts = vmstat(FLUSHED) - interrupts;
	before -= mapped_pages("self", memory, pages);
	if (before < pages / 2)
		errx(1, "only %lu of %lu pages were reclaimed", before, pages);
	printf("VICTIM alone %.1f meanwhile %.1f interrupts %lu pages %lu ns %llu\n", alone,
	       meanwhile, interrupts, before, ns);
	return 0;
}
