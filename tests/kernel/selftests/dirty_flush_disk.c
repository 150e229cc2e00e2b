// SPDX-License-Identifier: GPL-2.0
/*
 * What is written to swap takes time, on a disk and in a file on ext4: folios are under writeback
 * when pageout() has unlocked them. Every byte that was written last must be there, whoever writes
 * meanwhile; and how many bios a page takes is told, before the block layer merges any.
 *
 *	dirty_flush_disk DISK FOLDER [SECONDS]
 *
 * so long for each, 2 without. DISK is overwritten; FOLDER is on the disk /dev/vdc.
 *
 * Needs root, for the folio sizes; cgroup2 on /sys/fs/cgroup; and swap on block devices that can
 * be switched off and on.
 */

#define _GNU_SOURCE
#include "swap_device.h"
#include "writers.h"

#define SIZE PMD
#define ROOM (16 * 1024 * KIB)

/* The writes of a disk, with those that were merged. */
static unsigned long bios(const char *disk)
{
	unsigned long done, merged;
	char path[96];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/block/%s/stat", strrchr(disk, '/') + 1);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%*u %*u %*u %*u %lu %lu", &done, &merged) != 2)
		ksft_exit_fail_msg("%s: %s\n", path, strerror(errno));
	fclose(file);
	return done + merged;
}

static void test(const struct swap *swap, const char *disk, const char *what)
{
	unsigned long before, written, out = 0, busy = 0, wrong;
	struct timespec start;
	char *at;

	swap_on(swap);
	others_off();
	settle();
	at = memory(SIZE, false);
	before = vmstat("pswpout");
	written = bios(disk);
	start_writers(at, SIZE, false);
	for (start = begin(); !out_of_time(start, busy);) {
		unsigned long out_before = out;

		pageout(at, SIZE);
		busy += !!vmstat("nr_writeback");
		out = vmstat("pswpout") - before;
		pace_writers(out > out_before);
	}
	wrong = end_writers();
	pageout(at, SIZE);
	wrong += wrong_pages();
	out = vmstat("pswpout") - before;
	settle();
	written = bios(disk) - written;
	ksft_print_msg("%lu pages out by %lu bios, %lu times under writeback, %lu wrong\n", out,
		       written, busy, wrong);
	ksft_test_result(out && busy && !wrong, "what was written last: %s\n", what);
	munmap(at, SIZE);
	others_on();
	swap_off(swap);
}

/* Without holes, and on the disk: swapon() wants to know where. */
static struct swap swap_file(const char *folder)
{
	struct swap swap = { .priority = 100 };
	static char block[64 * KIB];
	int fd;

	snprintf(swap.path, sizeof(swap.path), "%s/swap", folder);
	fd = open(swap.path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	for (unsigned long at = 0; fd >= 0 && at < ROOM; at += sizeof(block))
		if (write(fd, block, sizeof(block)) != sizeof(block))
			ksft_exit_fail_msg("%s: %s\n", swap.path, strerror(errno));
	if (fd < 0 || fsync(fd) || close(fd))
		ksft_exit_fail_msg("%s: %s\n", swap.path, strerror(errno));
	make_swap(swap.path, ROOM);
	return swap;
}

int main(int argc, char **argv)
{
	struct swap disk = { .priority = 100 }, file;

	if (argc < 3)
		ksft_exit_fail_msg("usage: dirty_flush_disk DISK FOLDER [SECONDS]\n");
	if (argc > 3)
		seconds = atoi(argv[3]);
	ksft_print_header();
	ksft_set_plan(2);
	begin_anon();
	snprintf(disk.path, sizeof(disk.path), "%s", argv[1]);
	make_swap(disk.path, ROOM);
	test(&disk, disk.path, "a disk");
	file = swap_file(argv[2]);
	test(&file, "/dev/vdc", "a file on ext4");
	unlink(file.path);
	ksft_finished();
}
