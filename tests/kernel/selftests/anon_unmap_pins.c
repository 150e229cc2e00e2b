// SPDX-License-Identifier: GPL-2.0
/*
 * What unmapping an anonymous folio in runs of PTEs must leave while the kernel has its
 * pages: what is pinned, mapped; and each byte, there and here.
 *
 *	anon_unmap_pins [SECONDS [single]]
 *
 * so long for each race, 2 without. single: of single pages, which may be unmapped together.
 *
 * Needs root, for the folio sizes; cgroup2 on /sys/fs/cgroup; swap on block devices that can
 * be switched off and on; gup_test; and a disk that takes O_DIRECT here: one case is skipped
 * on tmpfs.
 *
 * Reclaim takes a clean page out of the swap cache before it flushes the TLB, so that for a
 * while a CPU may read the old page by a translation that it has, though another one is
 * mapped, if that did not come by a fault on this CPU. The kernel is so, page by page or not.
 * Who looks at what came another way has to forget_translations().
 *
 * A long pin first moves what lies in CMA, which a reference of reclaim's may prevent: then it
 * is refused, and the pages are as they were.
 */

#define _GNU_SOURCE
#include <linux/io_uring.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <sys/uio.h>

#include "anon_unmap_race.h"

#define PIN_LONGTERM_TEST_START _IOW('g', 7, struct pin_longterm_test)
#define PIN_LONGTERM_TEST_STOP _IO('g', 8)
#define PIN_LONGTERM_TEST_READ _IOW('g', 9, __u64)
#define PIN_LONGTERM_TEST_FLAG_USE_FAST 2
struct pin_longterm_test {
	__u64 addr;
	__u64 size;
	__u32 flags;
};

/*
 * A kernel user with a long pin, io_uring's registered buffer: what it writes to the pages
 * that it has must be what the process reads, or the pages were shared or replaced.
 */
static int ring;

static bool pin(char *at)
{
	struct iovec iov = { at, FOLIO };

	return !syscall(__NR_io_uring_register, ring, IORING_REGISTER_BUFFERS, &iov, 1);
}

static void unpin(void)
{
	syscall(__NR_io_uring_register, ring, IORING_UNREGISTER_BUFFERS, NULL, 0);
}

/* mprotect() flushes what it changes, and what reclaim has put off. */
static void forget_translations(char *at)
{
	if (mprotect(at, FOLIO, PROT_READ) || mprotect(at, FOLIO, PROT_READ | PROT_WRITE))
		ksft_exit_fail_msg("mprotect: %s\n", strerror(errno));
}

struct queues {
	struct io_uring_params params;
	char *rings;
	struct io_uring_sqe *sqes;
};

static struct queues queues;

static bool open_ring(void)
{
	queues.params = (struct io_uring_params){};
	ring = syscall(__NR_io_uring_setup, 1, &queues.params);
	if (ring < 0 || !(queues.params.features & IORING_FEAT_SINGLE_MMAP))
		return false;
	queues.rings = mmap(NULL, queues.params.cq_off.cqes + 64 * sizeof(struct io_uring_cqe),
			    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring,
			    IORING_OFF_SQ_RING);
	queues.sqes = mmap(NULL, sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQES);
	return queues.rings != MAP_FAILED && queues.sqes != MAP_FAILED;
}

/* The kernel reads a page of the file to @at, through the pin. */
static bool read_pinned(int fd, char *at, unsigned long offset)
{
	unsigned int *tail = (void *)(queues.rings + queues.params.sq_off.tail);
	unsigned int *array = (void *)(queues.rings + queues.params.sq_off.array);
	unsigned int *head = (void *)(queues.rings + queues.params.cq_off.head);
	struct io_uring_cqe *cqes = (void *)(queues.rings + queues.params.cq_off.cqes);
	struct io_uring_cqe *cqe = &cqes[*head & (queues.params.cq_entries - 1)];

	queues.sqes[0] = (struct io_uring_sqe){
		.opcode = IORING_OP_READ_FIXED, .fd = fd, .off = offset,
		.addr = (uintptr_t)at, .len = PAGE,
	};
	array[*tail & (queues.params.sq_entries - 1)] = 0;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (syscall(__NR_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
		return false;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (cqe->res != (int)PAGE)
		return false;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return true;
}

/*
 * Whether some migration failed since this was asked last: a long pin is then refused by ENOMEM
 * or, where io_uring has a part of the pages, EFAULT.
 */
static bool could_not_move(void)
{
	static unsigned long seen_failed;
	unsigned long failed = vmstat("pgmigrate_fail");
	bool more = failed != seen_failed;

	seen_failed = failed;
	return more;
}

static void test_pins(void)
{
	char *at = folios(FOLIO, 0), page[PAGE];
	int fd = memfd_create("anon_unmap", 0), error;
	unsigned long pins = 0, refusals = 0, wrong = 0, out = 0;
	struct timespec start = begin();
	pthread_t thread;

	if (!open_ring() || fd < 0)
		return ksft_test_result_fail("pins: io_uring: %s\n", strerror(errno));
	could_not_move();
	thread = reclaimer(at);
	for (unsigned int n = 1; !out_of_time(start, pins && out); n++) {
		pageout(at, FOLIO);
		out += swapped(at, FOLIO);
		if (!pin(at)) {
			error = errno;
			if ((error == ENOMEM || error == EFAULT) && could_not_move()) {
				refusals++;
				continue;
			}
			ksft_print_msg("cannot pin: %s\n", strerror(error));
			wrong++;
			break;
		}
		forget_translations(at);
		for (unsigned int i = 0; i < PAGES; i++) {
			memset(page, n + i, PAGE);
			if (pwrite(fd, page, PAGE, 0) != (ssize_t)PAGE ||
			    !read_pinned(fd, at + i * PAGE, 0) || memcmp(at + i * PAGE, page, PAGE))
				wrong++;
			/*
			 * io_uring does not make its pages dirty, and one that was clean, its
			 * content in swap, would be dropped once the pin is: so it is written to.
			 */
			*(volatile char *)(at + i * PAGE) = page[0];
		}
		wrong += swapped(at, FOLIO);
		unpin();
		wrong += !each_byte(at, FOLIO, n);
		pins++;
	}
	end(thread);
	close(fd);
	close(ring);
	ksft_print_msg("%lu pins, %lu refused, %lu pages seen swapped out, %lu wrong\n",
		       pins, refusals, out, wrong);
	ksft_test_result(pins && out && !wrong, "what is pinned is what is mapped\n");
	munmap(at, FOLIO);
}

/* All is mapped again, and where reclaim finds it: what came back page by page is this CPU's alone. */
static void fill_again(char *at, unsigned int with)
{
	fill_on(at, FOLIO, with);
	if (madvise(seen, PAGE, MADV_COLD))
		ksft_exit_fail_msg("MADV_COLD: %s\n", strerror(errno));
}

/*
 * A long pin for reading, which takes a page that is exclusive as it is: what the process
 * writes to it then must be what the kernel reads, until the end of the pin, or the page was
 * swapped out although it was pinned. Of single pages it takes one, another one each time.
 */
static void test_read_pins(void)
{
	char *at = folios(FOLIO, 0);
	struct pin_longterm_test long_pin = {
		.size = single ? PAGE : FOLIO, .flags = PIN_LONGTERM_TEST_FLAG_USE_FAST,
	};
	__u64 to = (uintptr_t)seen;
	unsigned long pins = 0, refusals = 0, wrong = 0, out = 0;
	struct timespec start = begin();
	int fd = open("/sys/kernel/debug/gup_test", O_RDWR), error;
	pthread_t thread;

	if (fd < 0)
		return ksft_test_result_fail("gup_test: %s\n", strerror(errno));
	could_not_move();
	thread = reclaimer(at);
	for (unsigned int n = 1; !out_of_time(start, pins && out); n++) {
		unsigned int first = single ? n % PAGES : 0;
		char *pinned = at + first * PAGE;

		long_pin.addr = (uintptr_t)pinned;
		/* Pages that are exclusive and about to go: the pin and reclaim meet there. */
		fill_again(at, n);
		out += swapped(at, FOLIO);
		if (ioctl(fd, PIN_LONGTERM_TEST_START, &long_pin)) {
			error = errno;
			if (error == ENOMEM && could_not_move()) {
				refusals++;
				continue;
			}
			ksft_print_msg("cannot pin: %s\n", strerror(error));
			wrong++;
			break;
		}
		pageout(at, FOLIO);
		wrong += swapped(pinned, long_pin.size);
		fill_on(at, FOLIO, n + 1);
		wrong += ioctl(fd, PIN_LONGTERM_TEST_READ, &to) ||
			 !each_byte(seen, long_pin.size, n + 1 + first);
		if (ioctl(fd, PIN_LONGTERM_TEST_STOP))
			ksft_exit_fail_msg("cannot unpin: %s\n", strerror(errno));
		wrong += !each_byte(at, FOLIO, n + 1);
		pins++;
	}
	end(thread);
	close(fd);
	ksft_print_msg("%lu pins, %lu refused, %lu pages seen swapped out, %lu wrong\n",
		       pins, refusals, out, wrong);
	ksft_test_result(pins && out && !wrong, "what is pinned for reading is what is mapped\n");
	munmap(at, FOLIO);
}

static unsigned int is_wrong(bool right, unsigned int round, const char *what)
{
	if (!right)
		ksft_print_msg("round %u: not %s\n", round, what);
	return !right;
}

/* Short pins for reading, by a disk that fetches what it writes. */
static void test_direct(void)
{
	static const char name[] = "anon_unmap.direct";
	char *at = folios(FOLIO, 0);
	unsigned long writes = 0, wrong = 0, out = 0;
	struct timespec start = begin();
	int fd = open(name, O_RDWR | O_CREAT | O_DIRECT, 0600);
	struct statfs fs;
	pthread_t thread;

	if (fd < 0 || unlink(name) || fstatfs(fd, &fs))
		return ksft_test_result_fail("O_DIRECT: %s\n", strerror(errno));
	/* It takes the flag, and copies. */
	if (fs.f_type == TMPFS_MAGIC) {
		close(fd);
		munmap(at, FOLIO);
		return ksft_test_result_skip("what a disk is given is what is mapped: tmpfs\n");
	}
	thread = reclaimer(at);
	for (unsigned int n = 1; !out_of_time(start, out); n++, writes++) {
		fill_again(at, n);
		out += swapped(at, FOLIO);
		wrong += is_wrong(pwrite(fd, at, FOLIO, 0) == (ssize_t)FOLIO, n, "written");
		/* Behind the pins, and while who reclaims had the CPU. */
		out += swapped(at, FOLIO);
		wrong += is_wrong(each_byte(at, FOLIO, n), n, "as it was filled");
		wrong += is_wrong(pread(fd, seen, FOLIO, 0) == (ssize_t)FOLIO, n, "read back");
		wrong += is_wrong(each_byte(seen, FOLIO, n), n, "on the disk as it was filled");
	}
	end(thread);
	close(fd);
	ksft_print_msg("%lu writes, %lu pages seen swapped out, %lu wrong\n", writes, out, wrong);
	ksft_test_result(writes && out && !wrong, "what a disk is given is what is mapped\n");
	munmap(at, FOLIO);
}

/* Pages in a pipe are those of the process, and stay as they were when it lets go of them. */
static void test_vmsplice(void)
{
	char *at = folios(FOLIO, 0);
	struct iovec iov = { at, FOLIO };
	unsigned long rounds = 0, wrong = 0, out = 0;
	struct timespec start = begin();
	pthread_t thread;
	int pipes[2];

	if (pipe(pipes))
		ksft_exit_fail_msg("pipe: %s\n", strerror(errno));
	thread = reclaimer(at);
	for (unsigned int n = 1; !out_of_time(start, out); n++, rounds++) {
		fill_again(at, n);
		out += swapped(at, FOLIO);
		/* A pipe has room for 16 pages. */
		if (vmsplice(pipes[1], &iov, 1, 0) != (ssize_t)FOLIO)
			ksft_exit_fail_msg("vmsplice: %s\n", strerror(errno));
		wrong += !each_byte(at, FOLIO, n);
		/* What the process has instead must not be what is in the pipe. */
		if (n % 2) {
			madvise(at, FOLIO, MADV_DONTNEED);
			fill_on(at, FOLIO, n + 1);
		}
		for (unsigned int i = 0; i < PAGES; i++)
			wrong += read(pipes[0], seen + i * PAGE, PAGE) != (ssize_t)PAGE;
		wrong += !each_byte(seen, FOLIO, n);
		wrong += !each_byte(at, FOLIO, n + n % 2);
	}
	end(thread);
	close(pipes[0]);
	close(pipes[1]);
	ksft_print_msg("%lu rounds, %lu pages seen swapped out, %lu wrong\n", rounds, out, wrong);
	ksft_test_result(rounds && out && !wrong, "what is in a pipe is what was spliced\n");
	munmap(at, FOLIO);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		seconds = atoi(argv[1]);
	single = argc > 2 && !strcmp(argv[2], "single");
	ksft_print_header();
	ksft_set_plan(4);
	begin_anon();
	test_pins();
	test_read_pins();
	test_direct();
	test_vmsplice();
	ksft_finished();
}
