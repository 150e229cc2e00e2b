// SPDX-License-Identifier: GPL-2.0
/*
 * folio_batch in the running kernel, for an mm that has MMU notifiers: what they are told, and what
 * becomes of a batch that one of them refuses.
 */

#include "mm_batch_dirty_flush_kunit.h"

KUNIT_ARRAY_PARAM_DESC(batch_mode, batch_modes, name);

/* Who has page tables of its own for an mm: what it is told will be cleared. */
struct told {
	struct mmu_notifier notifier;
	struct task_struct *task;
	DECLARE_BITMAP(pages, MAX_DIRTY);
	unsigned int nr, nr_twice, nr_outside, nr_may_block;
};

static int note_told(struct mmu_notifier *notifier, const struct mmu_notifier_range *range)
{
	struct told *told = container_of(notifier, struct told, notifier);
	unsigned long addr;

	if (current != told->task)
		return 0;
	told->nr++;
	told->nr_may_block += mmu_notifier_range_blockable(range);
	for (addr = range->start; addr < range->end; addr += PAGE_SIZE) {
		const unsigned long i = (addr - SZ_1G) / PAGE_SIZE;

		if (i >= MAX_DIRTY)
			told->nr_outside++;
		else if (__test_and_set_bit(i, told->pages))
			told->nr_twice++;
	}
	return 0;
}

static const struct mmu_notifier_ops told_ops = {
	.invalidate_range_start = note_told,
};

/*
 * It is told of what goes, once, and of nothing that stays: neighbours on the list by one range.
 * A batch must not make it wait.
 */
static void test_batch_notifier(struct kunit *test)
{
	struct told *told = kunit_kzalloc(test, sizeof(*told), GFP_KERNEL);
	/* Of every ten folios, from the first: how many are on the list. */
	const unsigned int nr = 60, of = 10, together = 4;
	struct dirty_flush_kunit *k = test->priv;
	unsigned int i, listed = 0;

	KUNIT_ASSERT_NOT_NULL(test, told);
	map_neighbours(test, nr);
	for (i = 0; i < nr; i++) {
		if (i % of >= together)
			continue;
		swap(k->folios[listed], k->folios[i]);
		listed++;
	}
	told->task = current;
	told->notifier.ops = &told_ops;
	KUNIT_ASSERT_EQ(test, mmu_notifier_register(&told->notifier, current->mm), 0);
	reclaim_list(test, k->folios, listed);
	mmu_notifier_unregister(&told->notifier, current->mm);

	KUNIT_EXPECT_EQ(test, k->got.nr_reclaimed, listed);
	/* A batch ends early where the task is to be rescheduled. */
	KUNIT_EXPECT_GE(test, told->nr, batched(test) ? listed / together : listed);
	KUNIT_EXPECT_LE(test, told->nr, batched(test) ? listed / 2 : listed);
	KUNIT_EXPECT_EQ(test, told->nr_may_block, batched(test) ? 0 : told->nr);
	KUNIT_EXPECT_EQ(test, told->nr_twice, 0);
	KUNIT_EXPECT_EQ(test, told->nr_outside, 0);
	for (i = 0; i < nr; i++)
		KUNIT_EXPECT_EQ_MSG(test, test_bit(i, told->pages), i % of < together,
				    "page %u", i);
	expect_contents(test);
	unmap_dirty(test);
}

/* Who cannot be told without waiting. */
struct refuser {
	struct mmu_notifier notifier;
	struct task_struct *task;
	unsigned int nr;
};

static int refuse_to_wait(struct mmu_notifier *notifier, const struct mmu_notifier_range *range)
{
	struct refuser *refuser = container_of(notifier, struct refuser, notifier);

	if (current != refuser->task || mmu_notifier_range_blockable(range))
		return 0;
	refuser->nr++;
	return -EAGAIN;
}

static const struct mmu_notifier_ops refuser_ops = {
	.invalidate_range_start = refuse_to_wait,
};

/* Nothing is mapped there. */
static bool invalidate_nothing(struct mmu_interval_notifier *interval,
			       const struct mmu_notifier_range *range, unsigned long seq)
{
	mmu_interval_set_seq(interval, seq);
	return true;
}

static const struct mmu_interval_notifier_ops interval_ops = {
	.invalidate = invalidate_nothing,
};

static int insert_interval(struct mmu_interval_notifier *interval)
{
	return mmu_interval_notifier_insert(interval, current->mm, 0, PAGE_SIZE, &interval_ops);
}

/*
 * What is refused in a batch is unmapped alone. Nothing that was begun for it stays begun, for
 * which who has an interval would wait, and this test as well.
 */
static void test_batch_refused(struct kunit *test)
{
	struct mmu_interval_notifier *intervals;
	struct dirty_flush_kunit *k = test->priv;
	struct mm_struct *mm = current->mm;
	const unsigned int nr = 5;
	struct mmu_notifier_range range;
	struct refuser *refuser;
	unsigned int i;
	int error;

	intervals = kunit_kcalloc(test, 2, sizeof(*intervals), GFP_KERNEL);
	refuser = kunit_kzalloc(test, sizeof(*refuser), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, intervals);
	KUNIT_ASSERT_NOT_NULL(test, refuser);
	map_neighbours(test, nr);
	refuser->task = current;
	refuser->notifier.ops = &refuser_ops;
	KUNIT_ASSERT_EQ(test, mmu_notifier_register(&refuser->notifier, mm), 0);
	error = insert_interval(&intervals[0]);
	if (error)
		goto unregister;
	reclaim_list(test, k->folios, nr);
	/* One that comes while a range has begun and not ended has a number of its own. */
	error = insert_interval(&intervals[1]);
	if (error)
		goto remove;
	KUNIT_EXPECT_EQ(test, intervals[1].invalidate_seq, intervals[0].invalidate_seq);
	if (intervals[1].invalidate_seq != intervals[0].invalidate_seq) {
		/* So that nothing here waits. */
		mmu_notifier_range_init(&range, MMU_NOTIFY_CLEAR, 0, mm, k->folios[0].addr,
					k->folios[0].addr + PAGE_SIZE);
		for (i = 0; i < refuser->nr; i++)
			mmu_notifier_invalidate_range_end(&range);
	}
	mmu_interval_notifier_remove(&intervals[1]);
remove:
	mmu_interval_notifier_remove(&intervals[0]);
unregister:
	mmu_notifier_unregister(&refuser->notifier, mm);
	KUNIT_ASSERT_EQ(test, error, 0);

	KUNIT_EXPECT_EQ(test, k->got.nr_reclaimed, nr);
	KUNIT_EXPECT_EQ(test, refuser->nr, batched(test) ? nr : 0);
	expect_contents(test);
	unmap_dirty(test);
}

static struct kunit_case folio_batch_notifier_cases[] = {
	KUNIT_CASE_PARAM(test_batch_notifier, batch_mode_gen_params),
	KUNIT_CASE_PARAM(test_batch_refused, batch_mode_gen_params),
	{}
};

static struct kunit_suite folio_batch_notifier_suite = {
	.name = "guest_mm_batch_folio_batch_notifier",
	.suite_init = swap_suite_init,
	.init = folio_batch_begin,
	.exit = dirty_flush_exit,
	.test_cases = folio_batch_notifier_cases,
};

kunit_test_suite(folio_batch_notifier_suite);
