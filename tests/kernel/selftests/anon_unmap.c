// SPDX-License-Identifier: GPL-2.0
/*
 * What unmapping an anonymous folio in runs of PTEs must leave, page by page: each byte; who
 * owns the page; and what soft-dirty and userfaultfd know of it, in swap, and once it is
 * back by a fault or by swapoff. What races with it is in anon_unmap_race.c.
 *
 *	anon_unmap [single]
 *
 * single: the same of single pages, which may be unmapped together, though they differ.
 *
 * Needs root, for the folio sizes; cgroup2 on /sys/fs/cgroup; and swap on block devices
 * that can be switched off and on.
 */

#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>

#include "anon_unmap.h"

#ifndef UFFDIO_REGISTER_MODE_RWP
#define UFFDIO_REGISTER_MODE_RWP ((__u64)1 << 3)
#define UFFD_PAGEFAULT_FLAG_RWP (1 << 3)
#define UFFD_FEATURE_RWP (1 << 17)
struct uffdio_rwprotect {
	struct uffdio_range range;
	__u64 mode;
};
#define UFFDIO_RWPROTECT_MODE_RWP ((__u64)1 << 0)
#define UFFDIO_RWPROTECT _IOWR(UFFDIO, 0x09, struct uffdio_rwprotect)
#endif

#define FOLIOS 8
#define SIZE (FOLIOS * FOLIO)

/* Pages that are the process's alone, in folios, and by halves of two page tables. */
static void test_content(void)
{
	char *at = folios(SIZE, 1), *space = reserve(), *moved = space + PMD - FOLIO / 2;
	char *other = folios(FOLIO, 2);
	unsigned int gone;
	bool was;

	was = as_asked(at) && as_asked(other);
	other = mremap(other, FOLIO, FOLIO, MREMAP_MAYMOVE | MREMAP_FIXED, moved);
	pageout(at, SIZE);
	gone = swapped(at, SIZE);
	/* MADV_PAGEOUT would split the one in two page tables. */
	reclaim("max");
	was &= other == moved && swapped(other, FOLIO) == PAGES;
	ksft_test_result(was && gone == SIZE / PAGE && each_byte(at, SIZE, 1) &&
			 each_byte(other, FOLIO, 2), "each byte is swapped out and read again\n");
	munmap(at, SIZE);
	munmap(other, FOLIO);
}

/* Every second page of half of a folio is the parent's own again after a fork: a copy. */
static void test_fork(void)
{
	char *at = folios(FOLIO, 1), byte = 0;
	int to_child[2], status;
	unsigned int gone;
	bool parent = true;
	pid_t child;

	if (!as_asked(at) || pipe(to_child))
		return ksft_test_result_fail("a folio that a fork shares: no folio\n");
	child = fork();
	if (!child) {
		if (read(to_child[0], &byte, 1) != 1)
			_exit(1);
		_exit(!each_byte(at, FOLIO, 1));
	}
	for (unsigned int i = 0; i < PAGES / 2; i += 2)
		memset(at + i * PAGE, 100, PAGE);
	reclaim("max");
	gone = swapped(at, FOLIO);
	for (unsigned int i = 0; i < PAGES; i++)
		for (unsigned int j = 0; j < PAGE; j++)
			parent &= at[i * PAGE + j] == (char)(i < PAGES / 2 && i % 2 == 0 ? 100 : i + 1);
	/* And what the parent writes now the child does not see. */
	memset(at, 101, FOLIO);
	if (write(to_child[1], &byte, 1) != 1)
		ksft_print_msg("the child is gone\n");
	status = waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status);
	ksft_print_msg("%u pages swapped out\n", gone);
	ksft_test_result(status && parent && gone == PAGES, "a folio that a fork shares is each one's own\n");
	munmap(at, FOLIO);
}

/*
 * The pages of @own are exclusive, the others are not, all of one folio: a child shared it
 * and is gone, and to write to a page of a folio that is all ours makes that page exclusive
 * where it is. The first write to such a page takes a fault, and no other does; for those
 * that are not written to, what comes back from swap is asked.
 */
static unsigned int test_mix(unsigned int own)
{
	unsigned int wrong = 0, shared;
	uint64_t frames[PAGES];
	char *at = folios(FOLIO, 1);
	unsigned long whole;
	struct sharer child;

	if (!as_asked(at))
		wrong++;
	child = share();
	shared = PAGES - count(at, PAGES, PM_MMAP_EXCLUSIVE);
	unshare_from(child);
	for (unsigned int i = 0; i < PAGES; i++)
		frames[i] = pagemap(at + i * PAGE) & FRAME;
	for (unsigned int i = 0; i < PAGES; i++) {
		if (!(own & 1u << i))
			continue;
		wrong += !write_faults(at + i * PAGE, 101 + i);
		memset(at + i * PAGE, 101 + i, PAGE);
		wrong += write_faults(at + i * PAGE, 101 + i);
	}
	for (unsigned int i = 0; i < PAGES; i++)
		wrong += frames[i] != (pagemap(at + i * PAGE) & FRAME);
	if (wrong || shared != PAGES) {
		ksft_print_msg("%x: %u pages were shared; no folio of both kinds\n", own, shared);
		wrong++;
	}
	whole = whole_out();
	pageout(at, FOLIO);
	if (swapped(at, FOLIO) != PAGES || whole_out() - whole != !single) {
		ksft_print_msg("%x: %u pages swapped out, %lu folios\n", own, swapped(at, FOLIO),
			       whole_out() - whole);
		wrong++;
	}
	for (unsigned int i = 0; i < PAGES; i++)
		for (unsigned int j = 0; j < PAGE; j++)
			wrong += at[i * PAGE + j] != (char)(own & 1u << i ? 101 + i : 1 + i);
	/* What was exclusive is writable as soon as it is back; as is a folio that only we have. */
	for (unsigned int i = 0; i < PAGES; i++) {
		bool exclusive = own & 1u << i;

		wrong += write_faults(at + i * PAGE, i) ? exclusive : !exclusive && !single;
	}
	fill_on(at, FOLIO, 2);
	pageout(at, FOLIO);
	wrong += !each_byte(at, FOLIO, 2);
	munmap(at, FOLIO);
	return wrong;
}

static void test_mixes(void)
{
	static const unsigned int own[] = { 0x5555, 0xaaaa, 0x1, 0x8000, 0xff, 0x7ffe };
	unsigned int wrong = 0;

	for (unsigned int n = 0; n < 6; n++)
		wrong += test_mix(own[n]);
	ksft_print_msg("%u wrong\n", wrong);
	ksft_test_result(!wrong, "exclusive pages stay that, among others that are not\n");
}

/* How many pages of a folio do not have @bit as @expected says. */
static unsigned int differ(const char *at, uint64_t bit, unsigned int expected)
{
	unsigned int wrong = 0;

	for (unsigned int i = 0; i < PAGES; i++)
		wrong += !!(pagemap(at + i * PAGE) & bit) != !!(expected & 1u << i);
	return wrong;
}

/* Which pages were written to since: in memory, in swap, read again, and after swapoff. */
static void test_soft_dirty(void)
{
	static const unsigned int written[] = { 0, 0x1, 0x8000, 0xffff, 0x3ff0, 0x5555 };
	unsigned int wrong = 0, gone = 0, back = 0;
	unsigned long whole = whole_out();

	for (unsigned int n = 0; n < 6; n++) {
		char *at = folios(FOLIO, 1), *other = folios(FOLIO, 1);
		volatile char *byte = at, *other_byte = other;

		write_to("/proc/self/clear_refs", "4");
		for (unsigned int i = 0; i < PAGES; i++) {
			if (written[n] & 1u << i) {
				byte[i * PAGE] = i + 1;
				other_byte[i * PAGE] = i + 1;
			}
		}
		pageout(at, FOLIO);
		pageout(other, FOLIO);
		gone += swapped(at, FOLIO) + swapped(other, FOLIO);
		wrong += differ(at, PM_SOFT_DIRTY, written[n]) + differ(other, PM_SOFT_DIRTY, written[n]);
		wrong += !each_byte(at, FOLIO, 1);
		swap_all_in();
		back += count(at, PAGES, PM_PRESENT) + count(other, PAGES, PM_PRESENT);
		wrong += differ(at, PM_SOFT_DIRTY, written[n]) + differ(other, PM_SOFT_DIRTY, written[n]);
		wrong += !each_byte(other, FOLIO, 1);
		munmap(at, FOLIO);
		munmap(other, FOLIO);
	}
	whole = whole_out() - whole;
	ksft_print_msg("%u pages and %lu folios swapped out, %u back, %u wrong\n", gone, whole, back, wrong);
	if (!(pagemap((char *)&wrong) & PM_SOFT_DIRTY))
		return ksft_test_result_skip("no soft-dirty here\n");
	ksft_test_result(!wrong && gone == 12 * PAGES && whole == (single ? 0 : 12) && back == gone,
			 "soft-dirty is as it was, page by page\n");
}

/* Who counts the faults that userfaultfd tells of, by page, and unprotects that page. */
struct watch {
	char *at;
	bool rwp;
	int fd, stop[2];
	unsigned int faults[PAGES], others;
	pthread_t thread;
};

static void protect(struct watch *w, unsigned int first, unsigned int nr, bool on)
{
	struct uffdio_range range = { (uintptr_t)w->at + first * PAGE, nr * PAGE };
	struct uffdio_writeprotect wp = { .range = range, .mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0 };
	struct uffdio_rwprotect rwp = { .range = range, .mode = on ? UFFDIO_RWPROTECT_MODE_RWP : 0 };

	if (w->rwp ? ioctl(w->fd, UFFDIO_RWPROTECT, &rwp) : ioctl(w->fd, UFFDIO_WRITEPROTECT, &wp))
		ksft_exit_fail_msg("userfaultfd: %s\n", strerror(errno));
}

static void *watch_on(void *data)
{
	struct watch *w = data;
	unsigned int flag = w->rwp ? UFFD_PAGEFAULT_FLAG_RWP : UFFD_PAGEFAULT_FLAG_WP;
	struct pollfd polled[] = { { .fd = w->fd, .events = POLLIN }, { .fd = w->stop[0], .events = POLLIN } };
	struct uffd_msg msg;

	while (poll(polled, 2, -1) > 0 && !polled[1].revents) {
		unsigned long page;

		if (read(w->fd, &msg, sizeof(msg)) != sizeof(msg))
			continue;
		page = (msg.arg.pagefault.address - (uintptr_t)w->at) / PAGE;
		if (msg.event != UFFD_EVENT_PAGEFAULT || page >= PAGES)
			ksft_exit_fail_msg("userfaultfd: event %x\n", msg.event);
		if (msg.arg.pagefault.flags & flag)
			w->faults[page]++;
		else
			w->others++;
		protect(w, page, 1, false);
	}
	return NULL;
}

static void watch(struct watch *w)
{
	w->fd = userfault(w->at, FOLIO, w->rwp ? UFFD_FEATURE_RWP : 0,
			  w->rwp ? UFFDIO_REGISTER_MODE_RWP : UFFDIO_REGISTER_MODE_WP);
	if (pipe(w->stop) || pthread_create(&w->thread, NULL, watch_on, w))
		ksft_exit_fail_msg("watch: %s\n", strerror(errno));
}

static void end_watch(struct watch *w)
{
	close(w->stop[1]);
	pthread_join(w->thread, NULL);
	close(w->stop[0]);
	close(w->fd);
}

/* How many pages had not one fault if they are of @expected, or any if they are not. */
static unsigned int faults_differ(const struct watch *w, unsigned int expected)
{
	unsigned int wrong = w->others;

	for (unsigned int i = 0; i < PAGES; i++)
		wrong += w->faults[i] != !!(expected & 1u << i);
	return wrong;
}

/*
 * Pages are protected by userfaultfd; those have the bit, and no others, in swap and back,
 * by a fault or by swapoff; and what they are protected from, be it writes or any use, is a
 * fault that userfaultfd tells of, one for each of them.
 */
static void test_uffd(const char *name, bool rwp, bool by_swapoff)
{
	const unsigned int protected = 0x3f8;
	struct watch w = { .at = folios(FOLIO, 1), .rwp = rwp };
	unsigned int gone, wrong = 0;
	unsigned long whole = whole_out();

	watch(&w);
	protect(&w, 3, 7, true);
	/* MADV_PAGEOUT would split a folio whose PTEs differ in this bit. */
	reclaim("max");
	gone = swapped(w.at, FOLIO);
	/* Others of ours may have gone, too. */
	whole = in_one(w.at) ? whole_out() - whole : 0;
	wrong += differ(w.at, PM_UFFD_WP, protected);
	if (by_swapoff) {
		swap_all_in();
		wrong += differ(w.at, PM_PRESENT, 0xffff) + differ(w.at, PM_UFFD_WP, protected);
		wrong += faults_differ(&w, 0);
	}
	wrong += !each_byte(w.at, FOLIO, 1);
	if (!rwp) {
		wrong += differ(w.at, PM_UFFD_WP, protected) + faults_differ(&w, 0);
		for (unsigned int i = 0; i < PAGES; i++)
			*(volatile char *)(w.at + i * PAGE) = i + 1;
	}
	wrong += faults_differ(&w, protected) + differ(w.at, PM_UFFD_WP, 0);
	wrong += !each_byte(w.at, FOLIO, 1);
	end_watch(&w);
	ksft_print_msg("%u pages and %lu folios swapped out, %u wrong\n", gone, whole, wrong);
	ksft_test_result(gone == PAGES && (single || whole) && !wrong, "%s survives, and %s\n", name,
			 by_swapoff ? "swapoff" : "a fault");
	munmap(w.at, FOLIO);
}

int main(int argc, char **argv)
{
	single = argc > 1 && !strcmp(argv[1], "single");
	ksft_print_header();
	ksft_set_plan(8);
	begin_anon();
	/* Where another CPU has yet to put some on the LRU list, these would not be reclaimed. */
	if (single)
		stay_on(0);
	test_content();
	test_fork();
	test_mixes();
	test_soft_dirty();
	test_uffd("userfaultfd's write protection", false, false);
	test_uffd("userfaultfd's write protection", false, true);
	test_uffd("userfaultfd's protection of any use", true, false);
	test_uffd("userfaultfd's protection of any use", true, true);
	ksft_finished();
}
