// SPDX-License-Identifier: GPL-2.0
/*
 * Has memory of another task reclaimed, and times the whole call.
 *
 *	remote KIND FOLIO_KIB MIB zero|data|mix pageout|reclaim[-ORDER] FILE CGROUP [check]
 *
 * KIND is anon, shmem, or file (FILE, on a file system with large folios, clean). zero:
 * filled with zeroes, which swap only notes. data: each word differs. mix: of three pages
 * one has zeroes. The memory is a
 * child's, which maps, fills and uses it and then sleeps. pageout: process_madvise()
 * with MADV_PAGEOUT, of all of it. reclaim: a write to CGROUP's memory.reclaim, which the
 * child is in, of four fifths of it, not used lately. ORDER: random, its pages came in
 * random order; half, two fifths are reclaimed, and of each two pages one was used lately,
 * by chance; forked, a child of the child shares it all. check: the child reads everything
 * back.
 *
 * Prints the nanoseconds in that, the pages that are not mapped any more behind it, and the
 * CPU's idle ticks meanwhile; and, where the machine counts them, cycles, instructions and
 * misses. Needs root, and to be started outside of CGROUP.
 */

#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include "folios.h"
#include "workload.h"

static const struct counter {
	const char *name;
	unsigned int type;
	unsigned long long config;
} counters[] = {
	{ "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
	{ "instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
	{ "cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES },
	{ "dTLB-load-misses", PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_DTLB |
		PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16 },
};

#define COUNTERS (sizeof(counters) / sizeof(*counters))

static int counting[COUNTERS];

static void open_counters(void)
{
	for (size_t i = 0; i < COUNTERS; i++) {
		struct perf_event_attr attr = {
			.size = sizeof(attr), .type = counters[i].type,
			.config = counters[i].config, .disabled = 1,
		};

		counting[i] = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	}
}

static void switch_counters(unsigned long request)
{
	for (size_t i = 0; i < COUNTERS; i++)
		if (counting[i] >= 0 && ioctl(counting[i], request, 0))
			err(1, "cannot switch the counter of %s", counters[i].name);
}

/* What the memory has at @at, in bytes from its start; or zeroes. */
static bool zero, mix;

static void fill(char *memory, size_t size, size_t at)
{
	size_t page = sysconf(_SC_PAGESIZE) / sizeof(unsigned long long);
	unsigned long long *words = (void *)memory;

	for (size_t i = 0; i < size / sizeof(*words); i++) {
		size_t word = at / sizeof(*words) + i;
		bool none = zero || (mix && word / page % 3 == 1);

		words[i] = none ? 0 : (word + 1) * 0x9e3779b97f4a7c15;
	}
}

static bool is_filled(char *memory, size_t size)
{
	static unsigned long long want[512];

	for (size_t at = 0; at < size; at += sizeof(want)) {
		fill((char *)want, sizeof(want), at);
		if (memcmp(memory + at, want, sizeof(want)))
			return false;
	}
	return true;
}

/* In which order the pages come. */
static unsigned long *shuffled(unsigned long nr)
{
	unsigned long *order = malloc(nr * sizeof(*order));
	unsigned long long chance = 1;

	if (!order)
		err(1, "no memory");
	for (unsigned long i = 0; i < nr; i++)
		order[i] = i;
	for (unsigned long i = nr - 1; i; i--) {
		unsigned long other, swapped = order[i];

		chance = chance * 6364136223846793005 + 1442695040888963407;
		other = (chance >> 33) % (i + 1);
		order[i] = order[other];
		order[other] = swapped;
	}
	return order;
}

static char *map_filled(const char *kind, unsigned long kib, size_t size, const char *path,
			bool random)
{
	unsigned long page = sysconf(_SC_PAGESIZE), pages = size / page, sized;
	bool file = !strcmp(kind, "file"), shmem = !strcmp(kind, "shmem");
	int prot = PROT_READ | (file ? 0 : PROT_WRITE), fd = -1;
	char *memory = aligned_space(size);
	int flags = MAP_FIXED;

	flags |= file || shmem ? MAP_SHARED : MAP_PRIVATE;
	flags |= file ? 0 : MAP_ANONYMOUS;

	if (file)
		fd = write_file(path, size, kib, fill);
	else
		choose_folios(kib, shmem ? "shmem_enabled" : "enabled");
	if (mmap(memory, size, prot, flags, fd, 0) == MAP_FAILED)
		err(1, "cannot map");
	if (random) {
		unsigned long *order = shuffled(size / (kib * KIB));

		for (unsigned long i = 0; i < size / (kib * KIB); i++)
			fill(memory + order[i] * kib * KIB, kib * KIB, order[i] * kib * KIB);
		free(order);
	} else if (!file) {
		fill(memory, size, 0);
	}
	for (unsigned long i = 0; i < pages; i++)
		asm volatile("" : : "r" (*(volatile char *)(memory + i * page)));
	sized = kib * KIB > page ? in_folios(memory, pages, kib) : pages;
	if (sized < pages / 100 * 95)
		errx(1, "%lu of %lu pages are in folios of %lu KiB, less than 95 %%",
		     sized, pages, kib);
	/*
	 * The file system's own blocks are the cgroup's as well. Dirty, they would have its
	 * reclaim wait for them to be written, 100 ms at a time.
	 */
	if (file && syncfs(fd))
		err(1, "cannot sync the file system of %s", path);
	return memory;
}

/* None was used lately, or a half of the pages, by chance. */
static void forget_use(char *memory, unsigned long pages, bool half)
{
	size_t page = sysconf(_SC_PAGESIZE);

	put("/proc/self/clear_refs", "1");
	for (unsigned long i = 0; half && i < pages; i++)
		if ((i + 1) * 0x9e3779b97f4a7c15 >> 63)
			asm volatile("" : : "r" (*(volatile char *)(memory + i * page)));
}

static void pageout(pid_t child, char *memory, size_t size)
{
	struct iovec all = { memory, size };
	int pidfd = syscall(SYS_pidfd_open, child, 0);
	long done;

	done = pidfd < 0 ? -1 : syscall(SYS_process_madvise, pidfd, &all, 1ul, MADV_PAGEOUT, 0);
	if (done != (long)size)
		err(1, "process_madvise");
	close(pidfd);
}

int main(int argc, char **argv)
{
	unsigned long kib, pages, before, left, idle;
	unsigned long long start, ns;
	char process[16];
	const char *order = "";
	bool by_reclaim, check, half;
	int talk[2], status;
	char *memory, go;
	pid_t child;
	size_t size;

	by_reclaim = argc > 5 && !strncmp(argv[5], "reclaim", 7);
	if (by_reclaim)
		order = argv[5] + 7;
	half = !strcmp(order, "-half");
	zero = argc > 4 && !strcmp(argv[4], "zero");
	mix = argc > 4 && !strcmp(argv[4], "mix");
	check = argc == 9 && !strcmp(argv[8], "check");
	if ((argc != 8 && !check) || (!by_reclaim && strcmp(argv[5], "pageout")) ||
	    (*order && !half && strcmp(order, "-random") && strcmp(order, "-forked")) ||
	    (!zero && !mix && strcmp(argv[4], "data"))) {
		fprintf(stderr, "usage: remote anon|shmem|file FOLIO_KIB MIB zero|data|mix %s\n",
			"pageout|reclaim[-random|-half|-forked] FILE CGROUP [check]");
		return 2;
	}
	kib = strtoul(argv[2], NULL, 10);
	size = strtoul(argv[3], NULL, 10) * MIB;
	pages = size / sysconf(_SC_PAGESIZE);

	/* Both: no other CPU has to be interrupted. */
	stay_on(0);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, talk))
		err(1, "socketpair");
	child = fork();
	if (child < 0)
		err(1, "fork");
	if (!child) {
		close(talk[0]);
		put_in(argv[7], "cgroup.procs", 0);
		memory = map_filled(argv[1], kib, size, argv[6], !strcmp(order, "-random"));
		if (!strcmp(order, "-forked") && !fork()) {
			/* It goes with its parent. */
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
		if (by_reclaim)
			forget_use(memory, pages, half);
		if (write(talk[1], &memory, sizeof(memory)) != sizeof(memory) ||
		    read(talk[1], &go, 1) != 1)
			return 1;
		if (check && !is_filled(memory, size))
			errx(1, "what is read back is not what was written");
		return 0;
	}
	close(talk[1]);
	if (read(talk[0], &memory, sizeof(memory)) != sizeof(memory)) {
		wait(&status);
		return 1;
	}
	snprintf(process, sizeof(process), "%d", child);
	before = mapped_pages(process, memory, pages);
	open_counters();
	/*
	 * The child goes to sleep meanwhile. Behind its write() it may still be runnable, and the
	 * timer's next tick would switch to it, in the midst of what is timed.
	 */
	usleep(10000);

	idle = idle_ticks();
	switch_counters(PERF_EVENT_IOC_ENABLE);
	start = now();
	if (by_reclaim)
		put_in(argv[7], "memory.reclaim", size / 5 * (half ? 2 : 4));
	else
		pageout(child, memory, size);
	ns = now() - start;
	switch_counters(PERF_EVENT_IOC_DISABLE);
	idle = idle_ticks() - idle;

	left = mapped_pages(process, memory, pages);
	if (write(talk[0], "", 1) != 1 || waitpid(child, &status, 0) != child || status)
		errx(1, "the task whose memory it was failed");
	if (before - left < pages / (half ? 3 : 2))
		errx(1, "only %lu of %lu pages were unmapped", before - left, pages);
	printf("ns %llu pages %lu idle %lu", ns, before - left, idle);
	for (size_t i = 0; i < COUNTERS; i++) {
		unsigned long long value;

		if (counting[i] >= 0 && read(counting[i], &value, sizeof(value)) == sizeof(value))
			printf(" %s %llu", counters[i].name, value);
	}
	printf("\n");
	return 0;
}
