// SPDX-License-Identifier: GPL-2.0
/*
 * Workloads of mm_batch's paths, each as a count of the clock's units per page.
 * Under QEMU with icount the clock counts guest instructions.
 *
 *	echo "order9 1000" > /sys/module/mm_batch_bench/parameters/run
 *	cat /sys/module/mm_batch_bench/parameters/run
 *
 * The second gives "<nanoseconds in the timed part> <pages>", with the cost of
 * reading the clock subtracted.
 */

#include <linux/cma.h>
#include <linux/dma-map-ops.h>
#include <linux/gfp.h>
#include <linux/irqflags.h>
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
 * The seed's workload: a block of the buddy's, split, freed as a range.
 *
 * How far a freed block merges depends on what is free around it. So that every
 * run finds the same, the block that is allocated and freed is one whose buddy
 * stays allocated meanwhile: it merges with nothing.
 */
static int run_order(unsigned int order, unsigned int loops, struct result *res)
{
	struct page *pair = alloc_pages(GFP_KERNEL, order + 1);
	int ret = 0;

	if (!pair)
		return -ENOMEM;
	split_page(pair, order + 1);
	free_contig_range(page_to_pfn(pair), 1UL << order);
	while (loops--) {
		struct page *page = alloc_pages(GFP_KERNEL, order);

		if (!page) {
			ret = -ENOMEM;
			break;
		}
		split_page(page, order);
		res->ns += timed_free(page_to_pfn(page), 1UL << order);
		res->pages += 1UL << order;
		cond_resched();
	}
	free_contig_range(page_to_pfn(pair) + (1UL << order), 1UL << order);
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
	unsigned int loops, n;
	u64 cost;
	int ret;

	if (sscanf(val, "order%u %u", &n, &loops) == 2 && n < MAX_PAGE_ORDER)
		ret = run_order(n, loops, &res);
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

MODULE_DESCRIPTION("Workloads of mm_batch");
MODULE_LICENSE("GPL");
