// SPDX-License-Identifier: GPL-2.0
/*
 * A QEMU plugin that counts guest instructions per translation block, while a
 * window is open. The guest needs no marker: the window opens when one of the
 * readers, that is code in the given ranges, has read the guest's clock, and
 * closes when one does so again. The clock's own instructions do not count. Or it
 * is open from when a function is called until one of the readers runs, to which
 * it returns. Each CPU has a window of its own.
 *
 *	-plugin libprofile.so,clock=ADDR|call=ADDR,readers=FROM-TO,out=FILE
 *
 * clock is the address of the function that reads the clock, call that of the one
 * that is called; readers may be given several times, TO excluded. At its exit QEMU
 * writes FILE: per block, in hex, address, instructions in it and instructions
 * executed, then a line "end".
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu-plugin.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = PLUGIN_VERSION;

#define MAX_READERS 4
#define MAX_CPUS 16
#define BUCKETS 65536

/* Translated again, a block finds itself: code is flushed and cut at will. */
struct block {
	struct block *next;
	unsigned long long pc;
	unsigned long long insns;
	unsigned long long executed;
	bool is_reader;
	bool is_clock;
	bool is_call;
};

static struct block *blocks[BUCKETS];
static struct { unsigned long long from, to; } readers[MAX_READERS];
static unsigned int nr_readers;
static unsigned long long clock_pc, call_pc;
static char *out;

static struct { bool window, reading, after_reader; } cpus[MAX_CPUS];

static void executed(unsigned int cpu, void *data)
{
	struct block *block = data;

	if (cpu >= MAX_CPUS)
		abort();
	if (block->is_call) {
		cpus[cpu].window = true;
	} else if (call_pc && block->is_reader) {
		cpus[cpu].window = false;
	} else if (block->is_clock && cpus[cpu].after_reader) {
		cpus[cpu].reading = true;
	} else if (block->is_reader && cpus[cpu].reading) {
		cpus[cpu].reading = false;
		cpus[cpu].window = !cpus[cpu].window;
	}
	cpus[cpu].after_reader = block->is_reader;
	if (cpus[cpu].window && !cpus[cpu].reading)
		block->executed += block->insns;
}

static struct block *find(unsigned long long pc, unsigned long long insns)
{
	struct block **bucket = &blocks[(pc ^ pc >> 16 ^ insns << 8) % BUCKETS], *block;

	for (block = *bucket; block; block = block->next)
		if (block->pc == pc && block->insns == insns)
			return block;
	block = calloc(1, sizeof(*block));
	if (!block)
		abort();
	block->pc = pc;
	block->insns = insns;
	block->is_clock = pc == clock_pc;
	block->is_call = pc == call_pc;
	for (unsigned int i = 0; i < nr_readers; i++)
		block->is_reader |= pc >= readers[i].from && pc < readers[i].to;
	block->next = *bucket;
	return *bucket = block;
}

static void translated(unsigned long long id, struct qemu_plugin_tb *tb)
{
	(void)id;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, QEMU_PLUGIN_CB_NO_REGS,
					     find(qemu_plugin_tb_vaddr(tb),
						  qemu_plugin_tb_n_insns(tb)));
}

static void finish(unsigned long long id, void *data)
{
	FILE *file = fopen(out, "w");

	(void)id;
	(void)data;
	if (!file) {
		perror(out);
		return;
	}
	for (unsigned int i = 0; i < BUCKETS; i++)
		for (struct block *block = blocks[i]; block; block = block->next)
			if (block->executed)
				fprintf(file, "%llx %llx %llx\n",
					block->pc, block->insns, block->executed);
	fputs("end\n", file);
	if (fclose(file))
		perror(out);
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(unsigned long long id, const struct qemu_info *info,
					   int argc, char **argv)
{
	(void)info;
	for (int i = 0; i < argc; i++) {
		if (sscanf(argv[i], "clock=%llx", &clock_pc) == 1 ||
		    sscanf(argv[i], "call=%llx", &call_pc) == 1)
			continue;
		if (!strncmp(argv[i], "out=", 4)) {
			out = strdup(argv[i] + 4);
		} else if (nr_readers < MAX_READERS &&
			   sscanf(argv[i], "readers=%llx-%llx", &readers[nr_readers].from,
				  &readers[nr_readers].to) == 2) {
			nr_readers++;
		} else {
			fprintf(stderr, "profile: bad argument %s\n", argv[i]);
			return -1;
		}
	}
	if (!clock_pc == !call_pc || !out || !nr_readers) {
		fprintf(stderr, "profile: clock= or call=, readers= and out= are needed\n");
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, finish, NULL);
	return 0;
}
