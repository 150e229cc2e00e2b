// SPDX-License-Identifier: GPL-2.0
/*
 * Maps memory in folios of one size, has the cgroup's reclaim take a part of it, and
 * prints what that took.
 *
 *	reclaim KIND FOLIO_KIB MIB PERCENT FILE CGROUP [2cpu|<TASKS>tasks]
 *
 * KIND is file (FILE, on a file system with large folios), shmem, lazyfree, anon, or a
 * name of these with -pte: PTEs map a folio that a PMD could. file-mixed: every second
 * page was written to through its mapping and is clean again, but soft-dirty. 2cpu:
 * another CPU has run in the same mm, and may have its translations. 99tasks: so many
 * children map the same pages, and sleep. What is mapped is clean, but for anon, and was
 * used before but not lately.
 *
 * Prints: RECLAIM <ns in try_to_unmap() per page> <ns in all> <idle ticks>.
 * Needs root, the meter, and to be started outside of CGROUP, which it enters.
 */

#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include "folios.h"
#include "workload.h"

#define METER "/sys/kernel/debug/mm_batch_meter/"

static unsigned long page, kib, size, pages;
static char *memory;

static void map_memory(int prot, int flags, int fd)
{
	memory = mmap(aligned_space(size), size, prot, flags | MAP_FIXED, fd, 0);
	if (memory == MAP_FAILED)
		err(1, "cannot map");
}

static void touch(void)
{
	for (unsigned long i = 0; i < pages; i++)
		asm volatile("" : : "r" (memory[i * page]));
}

static void *on_another_cpu(void *unused)
{
	stay_on(1);
	touch();
	pause();
	return unused;
}

#define MOST_TASKS 1000
static pid_t tasks[MOST_TASKS];

/* Each has touched all of the memory when this returns. */
static void start_tasks(unsigned long nr)
{
	int done[2];
	char byte;

	if (pipe(done))
		err(1, "pipe");
	for (unsigned long i = 0; i < nr; i++) {
		tasks[i] = fork();
		if (tasks[i] < 0)
			err(1, "fork");
		if (tasks[i])
			continue;
		touch();
		if (write(done[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	for (unsigned long i = 0; i < nr; i++)
		if (read(done[0], &byte, 1) != 1)
			err(1, "a task");
}

static void end_tasks(unsigned long nr)
{
	for (unsigned long i = 0; i < nr; i++)
		if (kill(tasks[i], SIGKILL) || waitpid(tasks[i], NULL, 0) != tasks[i])
			err(1, "a task");
}

/* Not used lately: or reclaim would give all of it a second chance. */
static void forget_use(unsigned long nr)
{
	char path[64];

	put("/proc/self/clear_refs", "1");
	for (unsigned long i = 0; i < nr; i++) {
		snprintf(path, sizeof(path), "/proc/%d/clear_refs", tasks[i]);
		put(path, "1");
	}
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
	errx(1, "the meter has no %s", name);
}

int main(int argc, char **argv)
{
	unsigned long percent, sized, before, gone, nr_tasks = 0;
	unsigned long long start, ns;
	bool pte, mixed, two;
	char path[256], *end = "";

	two = argc == 8 && !strcmp(argv[7], "2cpu");
	if (argc == 8 && !two)
		nr_tasks = strtoul(argv[7], &end, 10);
	if ((argc != 7 && argc != 8) ||
	    (argc == 8 && !two && (strcmp(end, "tasks") || !nr_tasks || nr_tasks > MOST_TASKS))) {
		fprintf(stderr, "usage: reclaim KIND FOLIO_KIB MIB PERCENT FILE CGROUP %s\n",
			"[2cpu|<TASKS>tasks]");
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
		int fd = write_file(argv[5], size, kib, NULL);

		map_memory(mixed ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd);
		if (pte && madvise(memory, size, MADV_NOHUGEPAGE))
			err(1, "cannot keep PMDs away");
		touch();
		for (unsigned long i = 0; mixed && i < pages; i += 2)
			memory[i * page] = 1;
		if (mixed && fsync(fd))
			err(1, "cannot write back");
	} else if (!strncmp(argv[1], "shmem", 5)) {
		choose_folios(kib, "shmem_enabled");
		map_memory(PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1);
		touch();
	} else {
		choose_folios(kib, "enabled");
		map_memory(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
		memset(memory, 1, size);
		/* A contiguous group of arm64's, all of it: C's batches end within one. */
		for (unsigned long at = 0; pte && at < size; at += PMD_SIZE)
			if (mprotect(memory + at, 64 * KIB, PROT_READ) ||
			    mprotect(memory + at, 64 * KIB, PROT_READ | PROT_WRITE))
				err(1, "cannot split a PMD");
		if (strncmp(argv[1], "anon", 4) && madvise(memory, size, MADV_FREE))
			err(1, "cannot MADV_FREE");
	}
	sized = in_folios(memory, pages, kib);
	if (sized < pages / 100 * 95)
		errx(1, "%lu of %lu pages are in folios of %lu KiB, less than 95 %%",
		     sized, pages, kib);
	if (two) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, on_another_cpu, NULL))
			errx(1, "no thread");
		usleep(200000);
	}
	start_tasks(nr_tasks);
	forget_use(nr_tasks);

	snprintf(path, sizeof(path), "%s/memory.reclaim", argv[6]);
	put(METER "reset", "1");
	before = idle_ticks();
	start = now();
	put(path, "%lu", size / 100 * percent);
	ns = now() - start;
	before = idle_ticks() - before;
	end_tasks(nr_tasks);
	/* With many tasks, what each has of its own is reclaimed as well. */
	gone = pages - mapped_pages("self", memory, pages);
	if (gone < pages / 100 * percent / 2)
		errx(1, "only %lu pages of %lu were unmapped", gone, pages);
	printf("RECLAIM %.3f %llu %lu\n", metered("ns_net") / metered("pages"), ns, before);
	return 0;
}
