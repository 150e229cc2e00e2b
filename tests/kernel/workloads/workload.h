/* SPDX-License-Identifier: GPL-2.0 */
/* What the workloads in C ask of time and of CPUs; _GNU_SOURCE is wanted. */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include <err.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* How many times a CPU was interrupted to flush. */
#define FLUSHED "nr_tlb_remote_flush_received"

/* In nanoseconds. */
static inline unsigned long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

/* The first CPU's idle time, in ticks. */
static inline unsigned long idle_ticks(void)
{
	FILE *stat = fopen("/proc/stat", "r");
	unsigned long ticks, iowait;
	char line[256];

	while (stat && fgets(line, sizeof(line), stat)) {
		if (sscanf(line, "cpu0 %*u %*u %*u %lu %lu", &ticks, &iowait) == 2) {
			fclose(stat);
			return ticks + iowait;
		}
	}
	err(1, "no idle time in /proc/stat");
}

/* A count of /proc/vmstat; 0 where the kernel does not count that. */
static inline unsigned long vmstat(const char *wanted)
{
	FILE *file = fopen("/proc/vmstat", "r");
	unsigned long count;
	char name[64];

	while (file && fscanf(file, "%63s %lu", name, &count) == 2) {
		if (strcmp(name, wanted))
			continue;
		fclose(file);
		return count;
	}
	if (!file || fclose(file))
		err(1, "/proc/vmstat");
	return 0;
}

/* This thread runs on one CPU from now on. */
static inline void stay_on(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		err(1, "no CPU %d", cpu);
}

/* A thread for each CPU but the first, whose number it gets. All are @ready behind this. */
static inline void start_threads(unsigned long cpus, pthread_barrier_t *ready,
				 void *(*run)(void *cpu))
{
	if (pthread_barrier_init(ready, NULL, cpus))
		errx(1, "no barrier");
	for (uintptr_t cpu = 1; cpu < cpus; cpu++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, run, (void *)cpu))
			errx(1, "no thread");
	}
	pthread_barrier_wait(ready);
}

#endif
