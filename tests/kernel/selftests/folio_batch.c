// SPDX-License-Identifier: GPL-2.0
/*
 * What goes on beside reclaim that takes folios of one page together: others fork, lock, move and
 * split what is reclaimed, or take its swap away; the limit of swap is met among them, or slots
 * come one by one, or are discarded before they are used again; some pages are KSM's; and of a file
 * some pages go and others stay. Every byte must be there, and what is locked must stay.
 *
 *	folio_batch FOLDER [SECONDS]
 *
 * so long for each, 2 without. FOLDER is on a disk.
 *
 * Needs root; cgroup2 on /sys/fs/cgroup; swap on block devices that can be switched off and on, and
 * zram and loop devices to have in their place; KSM; and tracefs on /sys/kernel/tracing, where
 * batches are counted.
 */

#define _GNU_SOURCE
#include "anon_unmap_race.h"
#include "swap_device.h"

#define SIZE PMD
#define FILE_PAGES 70
/* If all are full; and if some end early, as the task is to be rescheduled. */
#define MOST_BATCHES (2 * SIZE / PAGE / 32)
/* The first pages are the disturber's. */
#define ITS FOLIO

struct disturber {
	const char *what;
	/* One round; whether all was as it must be. */
	bool (*disturb)(char *at);
	char *at;
	unsigned long rounds, wrong;
};

/* Has the lock that rmap walks want, and looks at its copy. */
static bool fork_and_exit(char *at)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(!each_byte(at, ITS, 1));
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

static bool swap_off_and_on(char *at)
{
	swap_all_in();
	return each_byte(at, ITS, 1);
}

static bool lock_and_unlock(char *at)
{
	bool right;

	if (mlock(at, ITS))
		ksft_exit_fail_msg("mlock: %s\n", strerror(errno));
	right = count(at, ITS / PAGE, PM_PRESENT) == ITS / PAGE;
	usleep(500);
	right &= count(at, ITS / PAGE, PM_PRESENT) == ITS / PAGE;
	munlock(at, ITS);
	return right;
}

static bool move_and_back(char *at)
{
	static char *elsewhere;
	const int how = MREMAP_MAYMOVE | MREMAP_FIXED;
	bool right;

	if (!elsewhere)
		elsewhere = reserve();
	if (mremap(at, ITS, ITS, how, elsewhere) != elsewhere)
		ksft_exit_fail_msg("mremap: %s\n", strerror(errno));
	right = each_byte(elsewhere, ITS, 1);
	if (mremap(elsewhere, ITS, ITS, how, at) != at)
		ksft_exit_fail_msg("mremap: %s\n", strerror(errno));
	return right;
}

static bool split_and_merge(char *at)
{
	if (mprotect(at + ITS / 4, ITS / 2, PROT_READ) ||
	    mprotect(at + ITS / 4, ITS / 2, PROT_READ | PROT_WRITE))
		ksft_exit_fail_msg("mprotect: %s\n", strerror(errno));
	return each_byte(at, ITS, 1);
}

static struct disturber disturbers[] = {
	{ .what = "forked", .disturb = fork_and_exit },
	{ .what = "brought back by swapoff", .disturb = swap_off_and_on },
	{ .what = "locked", .disturb = lock_and_unlock },
	{ .what = "moved", .disturb = move_and_back },
	{ .what = "split", .disturb = split_and_merge },
};

#define DISTURBERS (sizeof(disturbers) / sizeof(*disturbers))

static void *disturb_on(void *data)
{
	struct disturber *d = data;

	for (; !atomic_load(&stop); d->rounds++)
		d->wrong += !d->disturb(d->at);
	return NULL;
}

static void test_disturbed(struct disturber *d)
{
	unsigned long before = vmstat("pswpout"), out = 0;
	struct timespec start;
	pthread_t thread;
	bool all;

	d->at = single_pages(SIZE, 1);
	stop = false;
	if (pthread_create(&thread, NULL, disturb_on, d))
		ksft_exit_fail_msg("pthread_create\n");
	for (start = begin(); !out_of_time(start, out && d->rounds > 2);) {
		/* It is locked, or not there, at times. */
		if (madvise(d->at, ITS, MADV_PAGEOUT) && errno != EINVAL && errno != ENOMEM)
			ksft_exit_fail_msg("MADV_PAGEOUT: %s\n", strerror(errno));
		pageout(d->at + ITS, SIZE - ITS);
		d->wrong += !each_byte(d->at + ITS, SIZE - ITS, ITS / PAGE + 1);
		reclaim_once("2M swappiness=max");
		d->wrong += !each_byte(d->at + ITS, SIZE - ITS, ITS / PAGE + 1);
		out = vmstat("pswpout") - before;
	}
	end(thread);
	all = each_byte(d->at, SIZE, 1);
	ksft_print_msg("%lu pages out, %lu rounds, %lu wrong\n", out, d->rounds, d->wrong);
	ksft_test_result(out && d->rounds > 2 && !d->wrong && all, "pages are %s meanwhile\n",
			 d->what);
	munmap(d->at, SIZE);
}

#define TRACING "/sys/kernel/tracing/"
#define TRACE_RUNS TRACING "events/mm_batch/mm_batch_run/enable"

/* From here on they are counted. */
static void begin_counting(void)
{
	FILE *trace = fopen(TRACING "trace", "w");

	if (!trace || fclose(trace))
		ksft_exit_fail_msg(TRACING "trace: %s\n", strerror(errno));
	write_to(TRACE_RUNS, "1");
}

static unsigned int batches(void)
{
	unsigned int nr = 0;
	char line[256];
	FILE *trace;

	write_to(TRACE_RUNS, "0");
	trace = fopen(TRACING "trace", "r");
	while (trace && fgets(line, sizeof(line), trace))
		nr += !!strstr(line, "path=folio_batch");
	if (!trace || fclose(trace))
		ksft_exit_fail_msg(TRACING "trace: %s\n", strerror(errno));
	return nr;
}

/* Where no slot lies behind another one all go alone: the same folios are no batch again and again. */
static void test_rotating(void)
{
	struct swap swap = zram_on(2 * SIZE, 0);
	unsigned int out, nr;
	bool right;
	char *at;

	swap_off(&swap);
	set_zram(&swap, "queue/rotational", 1);
	swap_on(&swap);
	others_off();
	at = single_pages(SIZE, 1);
	begin_counting();
	pageout(at, SIZE);
	nr = batches();
	out = swapped(at, SIZE);
	others_on();
	right = each_byte(at, SIZE, 1);
	munmap(at, SIZE);
	zram_off(&swap);
	ksft_print_msg("%u pages out, %u batches\n", out, nr);
	ksft_test_result(out == SIZE / PAGE && nr <= MOST_BATCHES && right,
			 "swap is on a disk that rotates\n");
}

/* As many pages are swapped as may be, and each of the others is an event. */
static void test_limit(void)
{
	static const unsigned int allowed = 40, size = 100 * PAGE;
	unsigned int out, events, nr;
	char path[96], counts[96], text[32];
	bool right;
	char *at;

	snprintf(path, sizeof(path), "%s/memory.swap.max", cgroup);
	snprintf(counts, sizeof(counts), "%s/memory.swap.events", cgroup);
	snprintf(text, sizeof(text), "%lu", allowed * PAGE);
	write_to(path, text);
	at = single_pages(SIZE, 1);
	events = number_of(counts, "max");
	begin_counting();
	pageout(at, size);
	nr = batches();
	events = number_of(counts, "max") - events;
	out = swapped(at, size);
	write_to(path, "max");
	right = each_byte(at, SIZE, 1);
	ksft_print_msg("%u pages out, %u events, %u batches\n", out, events, nr);
	ksft_test_result(out == allowed && events == size / PAGE - allowed && nr <= MOST_BATCHES &&
			 right,
			 "the limit of swap is met\n");
	munmap(at, SIZE);
}

/* Of two clusters of slots, of which the first is not discarded: it has the header. */
#define DISCARDED (SIZE + SIZE / 2)

struct discards {
	const struct swap *swap;
	unsigned long rounds, out, told, wrong;
};

/* How often a device was told what it need not keep. */
static unsigned long discarded(const struct swap *swap)
{
	return number_of_device(swap, "stat",
				"%*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %lu");
}

/*
 * All slots become free at once, and are wanted before the worker that discards them has had this
 * CPU. There are too few others; where it discards some just now, pages are left.
 */
static void *use_again(void *data)
{
	struct discards *d = data;
	struct timespec start;
	char *at;

	stay_on(0);
	go_first();
	at = single_pages(DISCARDED, 0);
	d->told = discarded(d->swap);
	for (start = begin(); !out_of_time(start, d->rounds > 3); d->rounds++) {
		fill_on(at, DISCARDED, d->rounds);
		pageout(at, DISCARDED);
		settle();
		d->out += swapped(at, DISCARDED);
		d->wrong += !each_byte(at, DISCARDED, d->rounds);
		if (madvise(at, DISCARDED, MADV_DONTNEED))
			ksft_exit_fail_msg("MADV_DONTNEED: %s\n", strerror(errno));
	}
	d->told = discarded(d->swap) - d->told;
	munmap(at, DISCARDED);
	return NULL;
}

/* Slots are discarded before they are used again, and not when there is something in them. */
static void test_discard(void)
{
	int file;
	struct swap swap = loop_on(2 * SIZE, SWAP_FLAG_DISCARD, &file);
	struct discards d = { .swap = &swap };
	pthread_t thread;

	if (!number_of_device(&swap, "queue/discard_max_bytes", "%lu")) {
		ksft_test_result_skip("slots are discarded: %s cannot\n", swap.path);
	} else {
		others_off();
		if (pthread_create(&thread, NULL, use_again, &d))
			ksft_exit_fail_msg("pthread_create\n");
		pthread_join(thread, NULL);
		others_on();
		ksft_print_msg("%lu rounds, %lu pages out, %lu times discarded, %lu wrong\n",
			       d.rounds, d.out, d.told, d.wrong);
		ksft_test_result(d.out > d.rounds * SIZE / PAGE / 2 && d.told > 1 && !d.wrong,
				 "slots are discarded before they are used again\n");
	}
	swap_off(&swap);
	close(file);
}

#define KSM "/sys/kernel/mm/ksm/"
/* So many pages, and each second time as many are for KSM. */
#define STRIPE (8 * PAGE)

/* Pages that KSM shares go with others, and each mapping is its own again when they are back. */
static void test_ksm(void)
{
	/* What single_pages() writes to a page it writes to the 256th from there, too. */
	static const unsigned long twin = 256 * PAGE, pairs = SIZE / PAGE / 4;
	unsigned int out = 0, ksm_out = 0;
	unsigned long shared = 0;
	struct timespec start;
	char *at;
	bool right;

	if (access(KSM "run", W_OK))
		return ksft_test_result_skip("pages of KSM are among others: no " KSM "\n");
	at = single_pages(SIZE, 1);
	for (unsigned long i = 0; i < SIZE; i += 2 * STRIPE)
		if (madvise(at + i, STRIPE, MADV_MERGEABLE))
			ksft_exit_fail_msg("MADV_MERGEABLE: %s\n", strerror(errno));
	write_to(KSM "run", "1");
	for (start = begin(); shared < pairs && !out_of_time(start, false); usleep(10000))
		shared = number_in(KSM "pages_sharing");
	write_to(KSM "run", "0");
	/* Those that KSM has looked at last count as used, the first time. */
	for (start = begin(); !ksm_out && !out_of_time(start, false); usleep(10000)) {
		reclaim("max");
		for (unsigned long i = 0; i < SIZE; i += 2 * STRIPE)
			ksm_out += swapped(at + i, STRIPE);
	}
	out = swapped(at, SIZE);
	right = each_byte(at, SIZE, 1);
	memset(at + twin, 0, PAGE);
	right &= each_byte(at, twin, 1);
	/* Shared no more. */
	write_to(KSM "run", "2");
	write_to(KSM "run", "0");
	munmap(at, SIZE);
	ksft_print_msg("%lu pages shared, %u pages out, %u of these KSM's\n", shared, out, ksm_out);
	ksft_test_result(shared >= pairs && ksm_out && out > ksm_out && right,
			 "pages of KSM are among others\n");
}

/* From page @first on so many pages go, and no others; all is there when the file is read. */
static void test_file(const char *folder, unsigned int first, unsigned int nr)
{
	static char block[PAGE];
	unsigned char there[FILE_PAGES];
	unsigned int wrong = FILE_PAGES;
	struct timespec start;
	char path[96];
	char *at;
	int fd;

	snprintf(path, sizeof(path), "%s/folio_batch", folder);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	/* One by one, or folios are large. */
	for (unsigned int i = 0; fd >= 0 && i < FILE_PAGES; i++) {
		memset(block, i + 1, PAGE);
		if (write(fd, block, PAGE) != (ssize_t)PAGE)
			ksft_exit_fail_msg("%s: %s\n", path, strerror(errno));
	}
	if (fd < 0 || fsync(fd))
		ksft_exit_fail_msg("%s: %s\n", path, strerror(errno));
	at = mmap(NULL, FILE_PAGES * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED || !each_byte(at, FILE_PAGES * PAGE, 1))
		ksft_exit_fail_msg("%s: not what was written\n", path);
	/* The journal may have a reference yet. */
	for (start = begin(); wrong && !out_of_time(start, true);) {
		pageout(at + first * PAGE, nr * PAGE);
		if (mincore(at, FILE_PAGES * PAGE, there))
			ksft_exit_fail_msg("mincore: %s\n", strerror(errno));
		wrong = 0;
		for (unsigned int i = 0; i < FILE_PAGES; i++)
			wrong += (there[i] & 1) == (i - first < nr);
	}
	if (!each_byte(at, FILE_PAGES * PAGE, 1))
		wrong = FILE_PAGES;
	munmap(at, FILE_PAGES * PAGE);
	if (ftruncate(fd, 0) || close(fd) || unlink(path))
		ksft_exit_fail_msg("%s: %s\n", path, strerror(errno));
	ksft_test_result(!wrong, "of a file, %u pages from page %u on\n", nr, first);
}

int main(int argc, char **argv)
{
	cpu_set_t before;

	if (argc < 2)
		ksft_exit_fail_msg("usage: folio_batch FOLDER [SECONDS]\n");
	if (argc > 2)
		seconds = atoi(argv[2]);
	ksft_print_header();
	ksft_set_plan(DISTURBERS + 8);
	begin_anon();
	/* Where another CPU has yet to put some on the LRU list, these would not be reclaimed. */
	before = stay_on(0);
	test_limit();
	test_rotating();
	test_discard();
	test_ksm();
	test_file(argv[1], 0, 3);
	test_file(argv[1], 1, 3);
	test_file(argv[1], 63, 1);
	test_file(argv[1], 64, 5);
	run_on(&before);
	for (unsigned int i = 0; i < DISTURBERS; i++)
		test_disturbed(&disturbers[i]);
	ksft_finished();
}
