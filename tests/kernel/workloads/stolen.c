// SPDX-License-Identifier: GPL-2.0
/*
 * Runs a program in a cgroup until reclaim has stolen so many of its pages, and prints
 * what happened in that time.
 *
 *	stolen PAGES SECONDS CGROUP PROGRAM ARGUMENTS...
 *
 * With PAGES 0 it runs SECONDS; else that is how long it may take. In a time that is
 * fixed the better side would do more work, and another part of it.
 *
 * Prints a line "name value" each: what /proc/interrupts has of TLB shootdowns (tlb) and
 * function call IPIs (cal), the meter's dirty flushes (flush_dirty_done), what the
 * cgroup and the kernel count, the seconds, and the bogo operations of a stress-ng that
 * can still say how many. Nothing of the cgroup runs any more afterwards. Needs root.
 */

#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "workload.h"

#define SPACES " \t\n"
#define POLL_US 20000
#define SECOND 1000000000ull
/* For the program to end by itself, and for what is left of it then. */
#define PATIENCE (2 * SECOND)
#define LIMIT (30 * SECOND)

static const char *cgroup;

/*
 * What is counted: the numbers behind the first word of a line, in a file, which is the
 * cgroup's if it has no folder.
 */
static const struct counter {
	const char *name, *file, *word;
} counters[] = {
	/* In this order at both ends: what is sent at once, then what it is for. */
	{ "tlb", "/proc/interrupts", "TLB:" },
	{ "cal", "/proc/interrupts", "CAL:" },
	{ "flush_dirty_done", "/sys/kernel/debug/mm_batch_meter/stats", "flush_dirty_done" },
	{ "stolen", "memory.stat", "pgsteal" },
	{ "pgscan_anon", "/proc/vmstat", "pgscan_anon" },
	{ "pgsteal_anon", "/proc/vmstat", "pgsteal_anon" },
	{ "refault_anon", "memory.stat", "workingset_refault_anon" },
	{ "refault_file", "memory.stat", "workingset_refault_file" },
	{ "pgmajfault", "memory.stat", "pgmajfault" },
	{ "oom_kill", "memory.events", "oom_kill" },
};

#define COUNTERS (sizeof(counters) / sizeof(*counters))
#define STOLEN (&counters[3])

static FILE *open_file(const char *name, const char *mode)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", *name == '/' ? "" : cgroup, name);
	file = fopen(path, mode);
	if (!file)
		err(1, "%s", path);
	return file;
}

static void put(const char *name, const char *text)
{
	FILE *file = open_file(name, "w");

	if (fputs(text, file) < 0 || fclose(file))
		err(1, "cannot write %s to %s", text, name);
}

static unsigned long read_counter(const struct counter *counter)
{
	FILE *file = open_file(counter->file, "r");
	char *line = NULL, *rest;
	unsigned long sum = 0;
	bool found = false;
	size_t size = 0;

	while (!found && getline(&line, &size, file) > 0) {
		char *word = strtok(line, SPACES);

		if (!word || strcmp(word, counter->word))
			continue;
		found = true;
		/* One for each CPU, then text. */
		while ((word = strtok(NULL, SPACES))) {
			unsigned long value = strtoul(word, &rest, 10);

			if (*rest)
				break;
			sum += value;
		}
	}
	free(line);
	fclose(file);
	if (!found)
		errx(1, "%s has no %s", counter->file, counter->word);
	return sum;
}

static void read_counters(unsigned long *values)
{
	for (size_t i = 0; i < COUNTERS; i++)
		values[i] = read_counter(&counters[i]);
}

/* Starts the program, in the cgroup; what it says comes out of @out. */
static pid_t start(char **argv, int *out)
{
	int ends[2];
	pid_t child;

	if (pipe2(ends, O_CLOEXEC))
		err(1, "pipe");
	child = fork();
	if (child < 0)
		err(1, "fork");
	if (!child) {
		put("cgroup.procs", "0");
		dup2(ends[1], STDOUT_FILENO);
		dup2(ends[1], STDERR_FILENO);
		execvp(argv[0], argv);
		err(1, "%s", argv[0]);
	}
	close(ends[1]);
	*out = ends[0];
	return child;
}

/* What the program has said. */
static const char *said(int out)
{
	static char text[65536];
	ssize_t length;

	fcntl(out, F_SETFL, O_NONBLOCK);
	length = read(out, text, sizeof(text) - 1);
	text[length > 0 ? length : 0] = 0;
	return text;
}

static bool ended(pid_t child)
{
	return waitpid(child, NULL, WNOHANG) == child;
}

/* Asks the program to end, and ends what does not. */
static void stop(pid_t child)
{
	const struct counter populated = { "", "cgroup.events", "populated" };
	unsigned long long limit = now() + PATIENCE;

	kill(child, SIGINT);
	while (!ended(child) && now() < limit)
		usleep(POLL_US);
	put("cgroup.kill", "1");
	for (limit = now() + LIMIT; read_counter(&populated); usleep(POLL_US))
		if (now() > limit)
			errx(1, "%s is not empty", cgroup);
}

/* The first number behind "] vm" in stress-ng's table, or 0. */
static double bogo_operations(const char *text)
{
	const char *line = strstr(text, "] vm ");
	double value = 0;

	if (line)
		sscanf(line + 5, "%lf", &value);
	return value;
}

int main(int argc, char **argv)
{
	unsigned long pages, before[COUNTERS], after[COUNTERS];
	unsigned long long limit, from, ns;
	pid_t child;
	int out;

	if (argc < 5) {
		fprintf(stderr, "usage: stolen PAGES SECONDS CGROUP PROGRAM ARGUMENTS...\n");
		return 2;
	}
	pages = strtoul(argv[1], NULL, 10);
	limit = strtoul(argv[2], NULL, 10) * SECOND;
	cgroup = argv[3];

	read_counters(before);
	from = now();
	child = start(argv + 4, &out);
	while (!pages || read_counter(STOLEN) - before[STOLEN - counters] < pages) {
		bool over = now() - from > limit;

		if (!pages && over)
			break;
		if (over || ended(child)) {
			put("cgroup.kill", "1");
			errx(1, "%s with %lu pages stolen instead of %lu: %s",
			     over ? "out of time" : "it ended", read_counter(STOLEN), pages,
			     said(out));
		}
		usleep(POLL_US);
	}
	read_counters(after);
	ns = now() - from;
	stop(child);

	for (size_t i = 0; i < COUNTERS; i++)
		printf("%s %lu\n", counters[i].name, after[i] - before[i]);
	printf("seconds %.1f\nbogo %.0f\n", (double)ns / SECOND, bogo_operations(said(out)));
	return 0;
}
