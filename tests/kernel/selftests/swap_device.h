/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SWAP_DEVICE_H
#define SWAP_DEVICE_H
/*
 * Swap devices of a test's own: zram, which is written to at once, and a loop device, which is
 * later on.
 */

#include <linux/loop.h>

#include "anon_unmap_race.h"

#define ZRAMS "/sys/class/zram-control/"

/* The guest's own swap, away and back. */
static inline void others_off(void)
{
	for (unsigned int i = 0; i < nr_swaps; i++)
		swap_off(&swaps[i]);
}

static inline void others_on(void)
{
	for (unsigned int i = 0; i < nr_swaps; i++)
		swap_on(&swaps[i]);
}

/* What mkswap writes. */
static inline void make_swap(const char *path, unsigned long size)
{
	static uint32_t head[PAGE / 4];
	int fd = open(path, O_RDWR);

	head[256] = 1;
	head[257] = size / PAGE - 1;
	memcpy((char *)head + PAGE - 10, "SWAPSPACE2", 10);
	if (fd < 0 || pwrite(fd, head, PAGE, 0) != (ssize_t)PAGE || fsync(fd) || close(fd))
		ksft_exit_fail_msg("mkswap %s: %s\n", path, strerror(errno));
}

static inline void set_zram(const struct swap *swap, const char *name, unsigned long value)
{
	char path[96], text[32];

	snprintf(path, sizeof(path), "/sys/block/%s/%s", swap->path + strlen("/dev/"), name);
	snprintf(text, sizeof(text), "%lu", value);
	write_to(path, text);
}

/* Writes fail when the pages of @size take up @room, if that is not 0. */
static inline struct swap zram_on(unsigned long size, unsigned long room)
{
	struct swap swap = { .priority = 100 };

	snprintf(swap.path, sizeof(swap.path), "/dev/zram%lu", number_in(ZRAMS "hot_add"));
	set_zram(&swap, "disksize", size);
	make_swap(swap.path, size);
	set_zram(&swap, "mem_limit", room);
	swap_on(&swap);
	return swap;
}

/* A number of a device, of which a file has several: the one that @format reads. */
static inline unsigned long number_of_device(const struct swap *swap, const char *name,
					     const char *format)
{
	unsigned long number;
	char path[96];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/block/%s/%s", swap->path + strlen("/dev/"), name);
	file = fopen(path, "r");
	if (!file || fscanf(file, format, &number) != 1)
		ksft_exit_fail_msg("%s: %s\n", path, strerror(errno));
	fclose(file);
	return number;
}

static inline unsigned long failed_writes(const struct swap *swap)
{
	return number_of_device(swap, "io_stat", "%*u %lu");
}

static inline void zram_off(const struct swap *swap)
{
	swap_off(swap);
	write_to(ZRAMS "hot_remove", swap->path + strlen("/dev/zram"));
}

/* What is to be written to swap has been. */
static inline void settle(void)
{
	while (vmstat("nr_writeback"))
		usleep(1000);
}

/* On a @file of memory, and gone when swap is switched off. */
static inline struct swap loop_on(unsigned long size, int flags, int *file)
{
	struct loop_config config = { .info.lo_flags = LO_FLAGS_AUTOCLEAR };
	int control = open("/dev/loop-control", O_RDWR), fd;
	struct swap swap = { .priority = 100, .flags = flags };

	*file = memfd_create("swap", MFD_ALLOW_SEALING);
	if (control < 0 || *file < 0 || ftruncate(*file, size))
		ksft_exit_fail_msg("loop device: %s\n", strerror(errno));
	snprintf(swap.path, sizeof(swap.path), "/dev/loop%d", ioctl(control, LOOP_CTL_GET_FREE));
	fd = open(swap.path, O_RDWR);
	config.fd = *file;
	if (fd < 0 || ioctl(fd, LOOP_CONFIGURE, &config))
		ksft_exit_fail_msg("%s: %s\n", swap.path, strerror(errno));
	make_swap(swap.path, size);
	swap_on(&swap);
	close(fd);
	close(control);
	return swap;
}

/* From now on each write to it fails. The seal is refused while the LRU has yet to get a page. */
static inline void fail_writes(int file)
{
	struct timespec start = begin();

	while (fcntl(file, F_ADD_SEALS, F_SEAL_WRITE))
		if (errno != EBUSY || out_of_time(start, false))
			ksft_exit_fail_msg("F_SEAL_WRITE: %s\n", strerror(errno));
}

#endif
