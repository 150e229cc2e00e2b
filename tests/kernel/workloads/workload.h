/* SPDX-License-Identifier: GPL-2.0 */
/* What the workloads in C ask of time and of CPUs; _GNU_SOURCE is wanted. */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include <err.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

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

/* This thread runs on one CPU from now on. */
static inline void stay_on(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		err(1, "no CPU %d", cpu);
}

#endif
