/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_BATCH_OTHER_CPU_KUNIT_H
#define _MM_BATCH_OTHER_CPU_KUNIT_H
/*
 * Another CPU that has the mm, so that x86 puts flushes off. It is never idle: one that is
 * gives the mm up at the first flush. It stores what it is asked to, by whatever translation
 * it has.
 */

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/uaccess.h>
#include <asm/tlbflush.h>

struct other_cpu {
	struct task_struct *task;
	struct mm_struct *mm;
	struct completion has;
	unsigned long at;	/* where it is to store, or 0 */
	unsigned long value;
	int error;
};

static int have_mm(void *data)
{
	struct other_cpu *other = data;

	kthread_use_mm(other->mm);
	complete(&other->has);
	while (!kthread_should_stop()) {
		/* Behind it is the value. */
		unsigned long at = smp_load_acquire(&other->at);

		if (at) {
			other->error = put_user(other->value, (unsigned long __user *)at);
			/* In front of it are the store and the error. */
			smp_store_release(&other->at, 0);
		}
		cond_resched();
	}
	kthread_unuse_mm(other->mm);
	return 0;
}

KUNIT_DEFINE_ACTION_WRAPPER(stop_thread, kthread_stop, struct task_struct *);

/* Stops a thread when the test ends, also where that is aborted. What it uses is older. */
static inline void stop_at_end(struct kunit *test, struct task_struct *task)
{
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, stop_thread, task), 0);
}

/* It has the test's mm until the test ends. */
static inline struct other_cpu *on_other_cpu(struct kunit *test)
{
	unsigned int cpu = cpumask_any_but(cpu_online_mask, raw_smp_processor_id());
	struct other_cpu *other;

	if (cpu >= nr_cpu_ids)
		kunit_skip(test, "needs a second CPU");
	other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, other);
	other->mm = current->mm;
	init_completion(&other->has);
	other->task = kthread_run_on_cpu(have_mm, other, cpu, "mm_batch/%u");
	stop_at_end(test, other->task);
	wait_for_completion(&other->has);
	return other;
}

/* Returns when it has. */
static inline void other_cpu_stores(struct kunit *test, struct other_cpu *other, unsigned long at,
				    unsigned long value)
{
	other->value = value;
	/* Read behind have_mm()'s acquire. */
	smp_store_release(&other->at, at);
	/* Then it has stored. */
	while (smp_load_acquire(&other->at))
		cond_resched();
	KUNIT_EXPECT_EQ(test, other->error, 0);
}

/*
 * It gives the mm up, too, if a flush finds it between two tasks, and has it again at once.
 * arm64 puts flushes off whoever has the mm, and does not wait.
 */
static inline void wait_for_other_cpu(struct other_cpu *other)
{
	while (!arch_tlbbatch_should_defer(other->mm))
		cond_resched();
}

#endif
