/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_BATCH_OTHER_CPU_KUNIT_H
#define _MM_BATCH_OTHER_CPU_KUNIT_H
/*
 * Another CPU that has the mm, so that x86 puts flushes off. It is never idle: one that is
 * gives the mm up at the first flush.
 */

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/kthread.h>
#include <asm/tlbflush.h>

struct other_cpu {
	struct mm_struct *mm;
	struct completion has;
};

static int have_mm(void *data)
{
	struct other_cpu *other = data;

	kthread_use_mm(other->mm);
	complete(&other->has);
	while (!kthread_should_stop())
		cond_resched();
	kthread_unuse_mm(other->mm);
	return 0;
}

static inline struct task_struct *on_other_cpu(struct kunit *test, struct other_cpu *other)
{
	unsigned int cpu = cpumask_any_but(cpu_online_mask, raw_smp_processor_id());
	struct task_struct *task;

	if (cpu >= nr_cpu_ids)
		kunit_skip(test, "needs a second CPU");
	init_completion(&other->has);
	task = kthread_run_on_cpu(have_mm, other, cpu, "mm_batch/%u");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	wait_for_completion(&other->has);
	return task;
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
