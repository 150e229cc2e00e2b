/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_BATCH_MEMCG_KUNIT_H
#define _MM_BATCH_MEMCG_KUNIT_H
/*
 * For suites that are started once user space has made the cgroup /mm_batch.
 */

#include <kunit/test.h>
#include <linux/cgroup.h>
#include <linux/memcontrol.h>

static struct mem_cgroup *memcg;

static inline int memcg_suite_init(struct kunit_suite *suite)
{
	struct cgroup *cgroup = cgroup_get_from_path("/mm_batch");

	if (IS_ERR(cgroup)) {
		kunit_err(suite, "no cgroup /mm_batch");
		return PTR_ERR(cgroup);
	}
	memcg = mem_cgroup_from_css(cgroup_get_e_css(cgroup, &memory_cgrp_subsys));
	cgroup_put(cgroup);
	return 0;
}

static inline void memcg_suite_exit(struct kunit_suite *suite)
{
	mem_cgroup_put(memcg);
	memcg = NULL;
}

#endif
