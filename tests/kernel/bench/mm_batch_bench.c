// SPDX-License-Identifier: GPL-2.0
/*
 * Workloads of mm_batch's paths, each as a count of the clock's units per page.
 * Under QEMU with icount the clock counts guest instructions.
 *
 *	echo "order9 1000" > /sys/module/mm_batch_bench/parameters/run
 *	cat /sys/module/mm_batch_bench/parameters/run
 *
 * The second gives "<nanoseconds in the timed part> <pages>", with the cost of
 * reading the clock subtracted. "order9 1000 16" frees 16 blocks between two reads of
 * the clock, which take as long as freeing a page does where they are a system call.
 */

#include <linux/cma.h>
#include <linux/dma-map-ops.h>
#include <linux/gfp.h>
#include <linux/irqflags.h>
#include <linux/kstrtox.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>

struct result {
	u64 ns;
	u64 pages;
};

static struct result last;

/* Two clock reads with nothing in between, mean of many. */
static u64 clock_cost(void)
{
	u64 start, sum = 0;
	int i;

	for (i = 0; i < 1000; i++) {
		start = ktime_get_ns();
		sum += ktime_get_ns() - start;
	}
	return sum / 1000;
}

/* Interrupts stay out of the timed part: it is the path and nothing else. */
static u64 timed_free(unsigned long pfn, unsigned long nr)
{
	unsigned long flags;
	u64 start, ns;

	local_irq_save(flags);
	start = ktime_get_ns();
	free_contig_range(pfn, nr);
	ns = ktime_get_ns() - start;
	local_irq_restore(flags);
	return ns;
}

/*
 * What freeing a block costs depends on what is free around it: its buddy, which
 * it would merge with, and its buddy's buddy, by which the allocator guesses
 * whether to queue it first or last. So that every run finds the same, free the
 * first quarter of a block and keep the rest: the next allocation of that order
 * gets the quarter, and it merges with nothing when it comes back.
 */
static unsigned int pin_order(unsigned int order)
{
	return min(order + 2, (unsigned int)MAX_PAGE_ORDER);
}

static struct page *pin(unsigned int order)
{
	struct page *block = alloc_pages(GFP_KERNEL, pin_order(order));

	if (block) {
		split_page(block, pin_order(order));
		free_contig_range(page_to_pfn(block), 1UL << order);
	}
	return block;
}

static void unpin(struct page *block, unsigned int order)
{
	free_contig_range(page_to_pfn(block) + (1UL << order),
			  (1UL << pin_order(order)) - (1UL << order));
}

#define MOST 64

/* Interrupts stay out here as well. */
static u64 timed_free_all(struct page **blocks, unsigned int nr, unsigned int order)
{
	unsigned long flags;
	unsigned int i;
	u64 start, ns;

	local_irq_save(flags);
	start = ktime_get_ns();
	for (i = 0; i < nr; i++)
		free_contig_range(page_to_pfn(blocks[i]), 1UL << order);
	ns = ktime_get_ns() - start;
	local_irq_restore(flags);
	return ns;
}

/* The seed's workload: a block of the buddy's, split, freed as a range; or some. */
static int run_order(unsigned int order, unsigned int loops, unsigned int together,
		     struct result *res)
{
	struct page *block = pin(order), *blocks[MOST];
	int ret = 0;

	if (!block)
		return -ENOMEM;
	while (loops-- && !ret) {
		unsigned int nr = 0;

		while (nr < together) {
			blocks[nr] = alloc_pages(GFP_KERNEL, order);
			if (!blocks[nr]) {
				ret = -ENOMEM;
				break;
			}
			split_page(blocks[nr++], order);
		}
		res->ns += timed_free_all(blocks, nr, order);
		res->pages += (u64)nr << order;
		cond_resched();
	}
	unpin(block, order);
	return ret;
}

/* A range longer than the largest block, of no round length. */
static int run_range(unsigned long nr, unsigned int loops, struct result *res)
{
	while (loops--) {
		struct page *page = alloc_contig_pages(nr, GFP_KERNEL,
						       numa_node_id(), NULL);

		if (!page)
			return -ENOMEM;
		res->ns += timed_free(page_to_pfn(page), nr);
		res->pages += nr;
		cond_resched();
	}
	return 0;
}

/* cma_release() sleeps, so interrupts stay on. */
static int run_cma(unsigned long nr, unsigned int loops, struct result *res)
{
	struct cma *cma = dev_get_cma_area(NULL);

	if (!cma)
		return -ENODEV;
	while (loops--) {
		struct page *page = cma_alloc(cma, nr, 0, false);
		u64 start;

		if (!page)
			return -ENOMEM;
		start = ktime_get_ns();
		cma_release(cma, page, nr);
		res->ns += ktime_get_ns() - start;
		res->pages += nr;
		cond_resched();
	}
	return 0;
}

static int run_set(const char *val, const struct kernel_param *kp)
{
	struct result res = {};
	unsigned int loops, n, together = 1;
	u64 cost;
	int ret;

	if (sscanf(val, "order%u %u %u", &n, &loops, &together) >= 2 &&
	    n < MAX_PAGE_ORDER && together && together <= MOST)
		ret = run_order(n, loops, together, &res);
	else if (sscanf(val, "range%u %u", &n, &loops) == 2 && n)
		ret = run_range(n, loops, &res);
	else if (sscanf(val, "cma%u %u", &n, &loops) == 2 && n)
		ret = run_cma(n, loops, &res);
	else
		return -EINVAL;
	if (ret)
		return ret;

	cost = clock_cost() * loops;
	res.ns -= min(cost, res.ns);
	last = res;
	return 0;
}

static int run_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%llu %llu\n", last.ns, last.pages);
}

static const struct kernel_param_ops run_ops = {
	.set = run_set,
	.get = run_get,
};
module_param_cb(run, &run_ops, NULL, 0600);
MODULE_PARM_DESC(run, "workload and loops to run; reading gives nanoseconds and pages");

/* One block of each order, for workloads that allocate by themselves (vmalloc). */
static struct page *pinned[MAX_PAGE_ORDER];

static int pinned_set(const char *val, const struct kernel_param *kp)
{
	unsigned int order;
	bool on;
	int ret = kstrtobool(val, &on);

	if (ret)
		return ret;
	for (order = 0; order < MAX_PAGE_ORDER; order++) {
		if (pinned[order])
			unpin(pinned[order], order);
		pinned[order] = NULL;
	}
	for (order = 0; on && order < MAX_PAGE_ORDER; order++) {
		pinned[order] = pin(order);
		if (!pinned[order])
			return -ENOMEM;
	}
	return 0;
}

static const struct kernel_param_ops pinned_ops = {
	.set = pinned_set,
};
module_param_cb(pinned, &pinned_ops, NULL, 0200);
MODULE_PARM_DESC(pinned, "1: keep the neighbours of one block of each order allocated");

MODULE_DESCRIPTION("Workloads of mm_batch");
MODULE_LICENSE("GPL");
