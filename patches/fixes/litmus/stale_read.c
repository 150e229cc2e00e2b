// SPDX-License-Identifier: GPL-2.0
/*
 * A CPU reads what is not there any more: Linux 7.3, no patch.
 *
 * Reclaim puts off the TLB flush for a page whose PTE is clean until it is freed, and takes it
 * out of the swap cache, or the page cache, before. In between a thread may fault in a new page
 * at the address and write to it, and tell another one, which reads the old page: its CPU has
 * that translation yet. Only zap, mprotect(), mremap() and madvise() flush what is put off.
 *
 *	gcc -O2 -static -pthread -o stale_read stale_read.c
 *	stale_read [SECONDS [DIRTY]]
 *
 * With DIRTY, pages whose number is a multiple of that are dirty, but for the first. A flush for
 * one of them ends what is stale; where such flushes are batched it comes later.
 *
 * wants three CPUs, root (for /proc/self/pagemap), swap, and no folio sizes for anonymous memory.
 * Exit code 1 if a read was stale.
 */

#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096ul
#define PAGES 32			/* the first is the one that is read and written to */
#define PRESENT (1ull << 63)

static char *area, *elsewhere;
static _Atomic uint64_t round_, told, ready[2];	/* odd rounds: reclaim is at work */
static atomic_bool stop;
static uint64_t replaced, stale, gone;
static int pagemap;

static volatile uint64_t *watched(void)
{
	return (volatile uint64_t *)area;
}

static uint64_t frame(void)
{
	uint64_t entry = 0;

	if (pread(pagemap, &entry, 8, (uintptr_t)area / PAGE * 8) != 8)
		err(2, "/proc/self/pagemap");
	return entry & PRESENT ? entry & ((1ull << 55) - 1) : 0;
}

static void on_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(2, "CPU %d", cpu);
}

/* A page that this CPU swapped in is not on the LRU before. */
static void drain(void)
{
	madvise(elsewhere, PAGE, MADV_COLD);
}

static bool at(uint64_t n)
{
	return round_ == n && !stop;
}

static void wait_for(uint64_t n)
{
	while (round_ < n && !stop)
		;
}

/* Faults the page in once reclaim has unmapped it, and writes. */
static void *writer(void *arg)
{
	uint64_t value = 0;

	on_cpu(1);
	for (uint64_t n = 1; !stop; n += 2) {
		wait_for(n);
		drain();
		ready[0] = n;
		while (at(n) && frame())
			;
		while (at(n)) {
			*watched() = ++value;
			told = value;
		}
	}
	return arg;
}

/* What it is told must be there. */
static void *reader(void *arg)
{
	on_cpu(2);
	for (uint64_t n = 1; !stop; n += 2) {
		uint64_t before, was;

		wait_for(n);
		drain();
		*watched();
		before = frame();
		*watched();
		ready[1] = n;
		while (at(n)) {
			was = told;
			if (*watched() >= was)
				continue;
			stale++;
			/* Anything that flushes what is put off. */
			mprotect(elsewhere, PAGE, PROT_READ);
			gone += *watched() >= was;
			mprotect(elsewhere, PAGE, PROT_READ | PROT_WRITE);
		}
		replaced += frame() != before;
	}
	return arg;
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 20);
	unsigned long dirty = argc > 2 ? atoi(argv[2]) : PAGES;
	uint64_t rounds = 0;
	pthread_t threads[2];

	pagemap = open("/proc/self/pagemap", O_RDONLY);
	area = mmap(NULL, (PAGES + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pagemap < 0 || area == MAP_FAILED)
		err(2, "set-up");
	elsewhere = area + PAGES * PAGE;
	for (unsigned long i = 0; i <= PAGES * PAGE; i++)
		area[i] = i * i >> 5;
	*watched() = 0;
	pthread_create(&threads[0], NULL, writer, NULL);
	pthread_create(&threads[1], NULL, reader, NULL);
	on_cpu(0);
	for (; time(NULL) < end; rounds++) {
		/* All out, and back by reads, so that no PTE is dirty but those that are to be. */
		madvise(area, PAGES * PAGE, MADV_PAGEOUT);
		for (unsigned long i = 0; i < PAGES; i++)
			*(volatile char *)(area + i * PAGE + 8);
		for (unsigned long i = dirty; i < PAGES; i += dirty)
			++*(volatile char *)(area + i * PAGE + 8);
		drain();
		round_++;
		while (ready[0] != round_ || ready[1] != round_)
			;
		madvise(area, PAGES * PAGE, MADV_PAGEOUT);
		round_++;
	}
	stop = true;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("%lu rounds, in %lu another page was there; %lu stale reads, %lu of them no more behind a flush\n",
	       rounds, replaced, stale, gone);
	return stale != 0;
}
