/* SPDX-License-Identifier: GPL-2.0 */
/* What the workloads in C ask of folios, and of files in /proc and /sys; _GNU_SOURCE is wanted. */
#ifndef FOLIOS_H
#define FOLIOS_H

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define KIB 1024ul
#define MIB (1024ul * KIB)
#define PMD_SIZE (2 * MIB)
#define THP "/sys/kernel/mm/transparent_hugepage/"
#define KPF_COMPOUND_TAIL 16

/* To a file, which exists. */
__attribute__((format(printf, 2, 3)))
static inline void put(const char *path, const char *format, ...)
{
	va_list arguments;
	char text[64];
	int fd, length;

	va_start(arguments, format);
	length = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, text, length) != length)
		err(1, "cannot write %s to %s", text, path);
	close(fd);
}

/* To a file of a cgroup; what cannot be reclaimed is no error. */
static inline void put_in(const char *group, const char *name, unsigned long number)
{
	char path[256];
	int file;

	snprintf(path, sizeof(path), "%s/%s", group, name);
	file = open(path, O_WRONLY);
	if (file < 0 || (dprintf(file, "%lu", number) < 0 && errno != EAGAIN))
		err(1, "%s", path);
	close(file);
}

/* Folios of @kib and of no other size from now on, by the files of that name; 4 is a page. */
static inline void choose_folios(unsigned long kib, const char *name)
{
	for (unsigned long size = 8; size <= PMD_SIZE / KIB; size *= 2) {
		char path[128];

		snprintf(path, sizeof(path), THP "hugepages-%lukB/%s", size, name);
		/* Anonymous folios of two pages do not exist. */
		if (access(path, W_OK) && size == 8)
			continue;
		put(path, size == kib ? "always" : "never");
	}
}

/* Address space of @size where a PMD may map a folio. */
static inline char *aligned_space(size_t size)
{
	char *at = mmap(NULL, size + PMD_SIZE, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		err(1, "no address space");
	return (char *)(((uintptr_t)at + PMD_SIZE - 1) / PMD_SIZE * PMD_SIZE);
}

static inline unsigned long long read_word(int fd, unsigned long long index)
{
	unsigned long long value;

	if (pread(fd, &value, sizeof(value), index * sizeof(value)) != sizeof(value))
		err(1, "cannot read a page's word");
	return value;
}

/* How many of a process's pages from @memory on are mapped. */
static inline unsigned long mapped_pages(const char *process, const char *memory,
					 unsigned long pages)
{
	unsigned long page = sysconf(_SC_PAGESIZE), count = 0;
	unsigned long long entries[512];
	char path[64];
	int pagemap;

	snprintf(path, sizeof(path), "/proc/%s/pagemap", process);
	pagemap = open(path, O_RDONLY);
	for (unsigned long done = 0; done < pages; done += 512) {
		size_t some = (pages - done < 512 ? pages - done : 512) * sizeof(*entries);
		off_t at = ((uintptr_t)memory / page + done) * sizeof(*entries);

		if (pread(pagemap, entries, some, at) != (ssize_t)some)
			err(1, "%s", path);
		for (unsigned long i = 0; i < some / sizeof(*entries); i++)
			count += entries[i] >> 63;
	}
	close(pagemap);
	return count;
}

/* How many of our own pages are mapped in folios of @kib and no other. */
static inline unsigned long in_folios(const char *memory, unsigned long pages, unsigned long kib)
{
	unsigned long page = sysconf(_SC_PAGESIZE), want = kib * KIB / page, found = 0, run = 0;
	int pagemap = open("/proc/self/pagemap", O_RDONLY);
	int flags = open("/proc/kpageflags", O_RDONLY);

	for (unsigned long i = 0; i <= pages; i++) {
		unsigned long long entry = 0, kpf = 0;

		if (i < pages)
			entry = read_word(pagemap, (uintptr_t)memory / page + i);
		if (entry >> 63)
			kpf = read_word(flags, entry & ((1ull << 55) - 1));
		if (kpf >> KPF_COMPOUND_TAIL & 1 && run) {
			run++;
			continue;
		}
		/* The folio before ended here. */
		found += run == want ? run : 0;
		run = entry >> 63;
	}
	close(pagemap);
	close(flags);
	return found;
}

/* The file anew, a folio per write, so that it comes in folios of that size; and on the disk. */
static inline int write_file(const char *path, size_t size, unsigned long kib,
			     void (*fill)(char *, size_t, size_t))
{
	char *folio = calloc(1, kib * KIB);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	for (size_t at = 0; folio && fd >= 0 && at < size; at += kib * KIB) {
		if (fill)
			fill(folio, kib * KIB, at);
		if (write(fd, folio, kib * KIB) != (ssize_t)(kib * KIB))
			err(1, "cannot write %s", path);
	}
	if (!folio || fd < 0 || fsync(fd))
		err(1, "cannot make %s", path);
	free(folio);
	return fd;
}

#endif
