// SPDX-License-Identifier: GPL-2.0
/*
 * Reclaim of a legacy memory cgroup waits for a folio under writeback that it meets again, instead
 * of balancing dirty pages. Whatever waits in a batch then must not wait for that: every byte that
 * was written last must be there.
 *
 *	dirty_flush_legacy DISK MOUNT [SECONDS]
 *
 * so long, 2 if not said. DISK is overwritten; MOUNT is where the legacy memory controller is
 * mounted. Skipped if it is not.
 *
 * Needs root, for the folio sizes; CONFIG_MEMCG_V1; CONFIG_STACKTRACE, to see reclaim wait; and swap
 * on block devices that can be switched off and on.
 */

#define _GNU_SOURCE
#include "legacy.h"
#include "swap_device.h"
#include "writers.h"

#define SIZE PMD
#define ROOM (16 * 1024 * KIB)

/* Whether a thread of ours waits in reclaim for writeback to end. */
static bool waits(pid_t thread)
{
	char path[48], stack[4096];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stack", thread);
	fd = open(path, O_RDONLY);
	len = fd < 0 ? -1 : read(fd, stack, sizeof(stack) - 1);
	if (len < 0)
		ksft_exit_fail_msg("%s: %s\n", path, strerror(errno));
	close(fd);
	stack[len] = 0;
	return strstr(stack, "folio_wait_writeback") && strstr(stack, "shrink_");
}

static pid_t reclaims;
static atomic_ulong waited;

static void *watch(void *unused)
{
	while (!atomic_load(&stop)) {
		waited += waits(reclaims);
		usleep(200);
	}
	return unused;
}

/* As a limit that is lowered has it: refused if reclaim finds too little. */
static void reclaim_half(void)
{
	char half[32];

	snprintf(half, sizeof(half), "%lu", number_in(of_legacy("memory.usage_in_bytes")) / 2);
	try_write_to(of_legacy("memory.limit_in_bytes"), half, EBUSY);
	write_to(of_legacy("memory.limit_in_bytes"), "-1");
}

int main(int argc, char **argv)
{
	unsigned long before, out = 0, wrong;
	struct swap disk = { .priority = 100 };
	struct timespec start;
	pthread_t watcher;
	char *at;

	if (argc < 3)
		ksft_exit_fail_msg("usage: dirty_flush_legacy DISK MOUNT [SECONDS]\n");
	if (argc > 3)
		seconds = atoi(argv[3]);
	ksft_print_header();
	ksft_set_plan(1);
	if (!has_legacy(argv[2])) {
		ksft_test_result_skip("no legacy memory cgroup\n");
		ksft_finished();
	}
	begin_folios();
	find_swaps();
	enter_legacy();
	snprintf(disk.path, sizeof(disk.path), "%s", argv[1]);
	make_swap(disk.path, ROOM);
	others_off();
	swap_on(&disk);
	before = vmstat("pswpout");
	at = memory(SIZE, false);
	start_writers(at, SIZE, false);
	reclaims = gettid();
	if (pthread_create(&watcher, NULL, watch, NULL))
		ksft_exit_fail_msg("pthread_create\n");
	for (start = begin(); !out_of_time(start, atomic_load(&waited));) {
		unsigned long out_before = out;

		reclaim_half();
		out = vmstat("pswpout") - before;
		pace_writers(out > out_before);
	}
	wrong = end_writers();
	pthread_join(watcher, NULL);
	pageout(at, SIZE);
	wrong += wrong_pages();
	ksft_print_msg("%lu pages out, reclaim seen waiting %lu times, %lu wrong\n", out,
		       atomic_load(&waited), wrong);
	ksft_test_result(out && waited && !wrong, "what was written last: legacy cgroup\n");
	munmap(at, SIZE);
	swap_off(&disk);
	others_on();
	ksft_finished();
}
