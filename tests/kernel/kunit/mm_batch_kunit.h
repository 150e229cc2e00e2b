/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_BATCH_KUNIT_H
#define _MM_BATCH_KUNIT_H
/* Shared by mm_batch's suites: a case's mode is its parameter. */

#include <kunit/test.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/mm_batch.h>

struct mode_param {
	const char *name;
	enum mm_batch_mode mode;
};

static const struct mode_param modes[] = {
	{ "off", MM_BATCH_OFF },
	{ "c", MM_BATCH_C },
	{ "rust", MM_BATCH_RUST },
};

static enum mm_batch_mode mode_before;

static inline int contig_free_init(struct kunit *test)
{
	const struct mode_param *param = test->param_value;

	mode_before = mm_batch_contig_free_mode();
	mm_batch_contig_free_set_mode(param->mode);
	return 0;
}

static inline void contig_free_exit(struct kunit *test)
{
	mm_batch_contig_free_set_mode(mode_before);
}

/* 2^order order-0 pages, one reference each. */
static struct page *alloc_split_gfp(struct kunit *test, unsigned int order,
				    gfp_t gfp)
{
	struct page *page = alloc_pages(gfp, order);

	KUNIT_ASSERT_NOT_NULL(test, page);
	split_page(page, order);
	return page;
}

static inline struct page *alloc_split(struct kunit *test, unsigned int order)
{
	return alloc_split_gfp(test, order, GFP_KERNEL);
}

#endif
