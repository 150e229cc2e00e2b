// SPDX-License-Identifier: GPL-2.0
/*
 * Where there is a slower tier of memory, reclaim demotes folios to it, and unmaps and writes out
 * those for which there was no room: they come to the list again when all others are done. Every
 * byte that was written last must be there, whoever writes meanwhile.
 *
 *	dirty_flush_demote [SECONDS]
 *
 * so long with room there, and without, 2 if not said. Skipped if there is no such tier.
 *
 * Needs root, for the folio sizes; cgroup2 on /sys/fs/cgroup; two NUMA nodes, the second slower and
 * small; and swap on block devices.
 */

#define _GNU_SOURCE
#include <linux/mempolicy.h>
#include <signal.h>
#include <sys/prctl.h>

#include "writers.h"

#define DEMOTION "/sys/kernel/mm/numa/demotion_enabled"
#define SLOWER "/sys/devices/system/node/node1/"
#define SIZE PMD
/* What of the slower node others may want meanwhile. */
#define SPARE (4 * 1024 * KIB)

static unsigned long free_there(void)
{
	unsigned long kib = 0;
	char line[128];
	FILE *file = fopen(SLOWER "meminfo", "r");

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Node 1 MemFree: %lu kB", &kib) == 1)
			break;
	if (!file || fclose(file))
		ksft_exit_fail_msg("%s: %s\n", SLOWER, strerror(errno));
	return kib * KIB;
}

static bool has_cpus(void)
{
	char cpus[16] = "";
	FILE *file = fopen(SLOWER "cpulist", "r");
	bool some = !file || (fgets(cpus, sizeof(cpus), file) && cpus[0] != '\n');

	if (file)
		fclose(file);
	return some;
}

/* Takes what is free on the slower node, and says so. */
static void fill_slower(int told)
{
	unsigned long nodes = 1 << 1, size = free_there();
	char *at;

	size = size > SPARE ? (size - SPARE) / PAGE * PAGE : PAGE;
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at != MAP_FAILED && !syscall(SYS_mbind, at, size, MPOL_BIND, &nodes, 3, 0) &&
	    !mlock(at, size) && write(told, "", 1) == 1)
		pause();
	exit(1);
}

/* A process that does that when it is told to: outside of the cgroup, so before that is entered. */
static pid_t filler(int *tell, int *told)
{
	int to[2], from[2];
	char byte;
	pid_t pid;

	if (pipe(to) || pipe(from))
		ksft_exit_fail_msg("pipe: %s\n", strerror(errno));
	pid = fork();
	if (pid < 0)
		ksft_exit_fail_msg("fork: %s\n", strerror(errno));
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (read(to[0], &byte, 1) == 1)
			fill_slower(from[1]);
		_exit(1);
	}
	close(to[0]);
	close(from[1]);
	*tell = to[1];
	*told = from[0];
	return pid;
}

/* As a limit that is reached has it, and not on request: what is not demoted is reclaimed. */
static void reclaim_half(void)
{
	char path[96], text[32];

	snprintf(path, sizeof(path), "%s/memory.current", cgroup);
	snprintf(text, sizeof(text), "%lu", number_in(path) / 2);
	snprintf(path, sizeof(path), "%s/memory.high", cgroup);
	write_to(path, text);
	write_to(path, "max");
}

static void test(const char *counter, const char *what)
{
	unsigned long before = vmstat(counter), met = 0, passes = 0, wrong;
	char *at = memory(SIZE, false);
	struct timespec start;

	start_writers(at, SIZE, false);
	for (start = begin(); !out_of_time(start, met); passes++) {
		unsigned long met_before = met;

		reclaim_half();
		met = vmstat(counter) - before;
		pace_writers(met > met_before);
	}
	wrong = end_writers();
	pageout(at, SIZE);
	wrong += wrong_pages();
	ksft_print_msg("%lu passes, %s %lu, %lu wrong\n", passes, counter, met, wrong);
	ksft_test_result(met && !wrong, "what was written last: %s\n", what);
	munmap(at, SIZE);
}

int main(int argc, char **argv)
{
	int tell, told;
	char byte = 0;
	pid_t full;

	if (argc > 1)
		seconds = atoi(argv[1]);
	ksft_print_header();
	ksft_set_plan(2);
	if (access(DEMOTION, W_OK) || has_cpus()) {
		for (int i = 0; i < 2; i++)
			ksft_test_result_skip("no slower tier of memory\n");
		ksft_finished();
	}
	full = filler(&tell, &told);
	begin_anon();
	write_to(DEMOTION, "true");
	test("pgdemote_direct", "with room in the slower tier");
	if (write(tell, &byte, 1) != 1 || read(told, &byte, 1) != 1)
		ksft_exit_fail_msg("filling node 1: %s\n", strerror(errno));
	test("pswpout", "with none");
	kill(full, SIGKILL);
	write_to(DEMOTION, "false");
	ksft_finished();
}
