// SPDX-License-Identifier: GPL-2.0
/*
 * dirty_flush, and what a window is to the whole of a list: meanwhile the mode is changed, or most
 * of the batch is taken back.
 */

#include "mm_batch_dirty_flush_kunit.h"

static void switch_off(struct kunit *test)
{
	mm_batch_dirty_flush_set_mode(MM_BATCH_OFF);
}

/* What waits when the mode changes is dealt with, and so is the rest of the list. */
static void test_dirty_mode_changes(struct kunit *test)
{
	static const unsigned int batches[] = { 32, 32, 32, 4 };
	struct dirty_flush_kunit *k = test->priv;

	have_other_cpu(test);
	map_many_dirty(test, 100, 0, false);
	k->in_window = switch_off;
	reclaim_list(test, k->folios, k->nr);
	k->in_window = NULL;
	KUNIT_EXPECT_EQ(test, mm_batch_dirty_flush_mode(), MM_BATCH_OFF);
	expect_batches(test, batches, ARRAY_SIZE(batches));
	expect_all_written(test);
	unmap_dirty(test);
}

/* The first folios are mapped again. */
static unsigned int nr_faults;

static void fault_in_some(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;
	unsigned int i;

	for (i = 0; i < nr_faults; i++)
		fault_in(test, &k->folios[i], 0);
}

/* Of a list of four batches, so many of the first are. */
static void take_back(struct kunit *test, unsigned int nr)
{
	struct dirty_flush_kunit *k = test->priv;
	const struct reclaimed *got = &k->got;
	unsigned int i;

	map_many_dirty(test, 100, 0, false);
	nr_faults = nr;
	k->in_window = fault_in_some;
	reclaim_list(test, k->folios, k->nr);
	k->in_window = NULL;
	KUNIT_EXPECT_EQ(test, got->nr_reclaimed, k->nr - nr);
	KUNIT_EXPECT_EQ(test, got->nr_written, k->nr - nr);
	KUNIT_EXPECT_EQ(test, got->stat.nr_unmap_fail, nr);
	KUNIT_EXPECT_FALSE(test, got->pending_at_write);
	for (i = 0; i < k->nr; i++) {
		KUNIT_EXPECT_EQ_MSG(test, k->folios[i].freed, i >= nr, "folio %u", i);
		expect_dirty_content(test, &k->folios[i], false);
	}
}

/* If faults take more than half of a batch back, the rest of the list has none. */
static void test_dirty_taken_back(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;

	have_other_cpu(test);
	take_back(test, FULL_BATCH / 2);
	KUNIT_EXPECT_EQ(test, k->got.nr_batches, 4);
	KUNIT_EXPECT_EQ(test, k->got.taken_back, 0);
	unmap_dirty(test);

	take_back(test, FULL_BATCH / 2 + 1);
	KUNIT_EXPECT_EQ(test, k->got.nr_batches, 1);
	KUNIT_EXPECT_EQ(test, k->got.taken_back, FULL_BATCH / 2 + 1);
	if (IS_ENABLED(CONFIG_X86))
		KUNIT_EXPECT_EQ(test, k->got.nr_ipis, 1 + k->nr - FULL_BATCH);
	unmap_dirty(test);
}

static int window_init(struct kunit *test)
{
	return dirty_flush_begin(test, MM_BATCH_RUST);
}

static struct kunit_case dirty_window_cases[] = {
	KUNIT_CASE(test_dirty_mode_changes),
	KUNIT_CASE(test_dirty_taken_back),
	{}
};

static struct kunit_suite dirty_window_suite = {
	.name = "guest_mm_batch_dirty_flush_window",
	.suite_init = swap_suite_init,
	.init = window_init,
	.exit = dirty_flush_exit,
	.test_cases = dirty_window_cases,
};

kunit_test_suite(dirty_window_suite);
