/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_BATCH_DIRTY_FLUSH_KUNIT_H
#define _MM_BATCH_DIRTY_FLUSH_KUNIT_H
/*
 * For the suites of dirty_flush: what reclaim makes of a list of dirty folios. It has the list as
 * MADV_PAGEOUT gives it one, by reclaim_pages().
 */

#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/vmstat.h>
#include <trace/events/kmem.h>
#include <trace/events/mm_batch.h>
#include <trace/events/tlb.h>
#include <trace/events/vmscan.h>
#include "mm_batch_dirty_folio_kunit.h"

/* A batch in C is a build's. */
static const struct mode_param flush_modes[] __maybe_unused = {
	{ "off", MM_BATCH_OFF },
#ifdef MM_BATCH_DIRTY_FLUSH_C
	{ "c", MM_BATCH_C },
#endif
	{ "rust", MM_BATCH_RUST },
};

static const struct mode_param batch_modes[] __maybe_unused = {
	{ "off", MM_BATCH_OFF },
#ifdef MM_BATCH_FOLIO_BATCH_C
	{ "c", MM_BATCH_C },
#endif
	{ "rust", MM_BATCH_RUST },
};

static inline bool batched(struct kunit *test)
{
	const struct mode_param *param = test->param_value;

	return param->mode != MM_BATCH_OFF;
}

static struct kunit *dirty_flush_test;

static void note_batch(void *data, enum mm_batch_run_path path, unsigned long nr_pages,
		       enum mm_batch_run_outcome outcome)
{
	struct dirty_flush_kunit *k = data;

	if (current != k->task || !k->reclaims || path != MM_BATCH_RUN_DIRTY_FLUSH)
		return;
	if (outcome == MM_BATCH_RUN_TAKEN_BACK)
		k->got.taken_back += nr_pages;
	else if (k->got.nr_batches < MAX_DIRTY)
		k->got.batches[k->got.nr_batches++] = nr_pages;
}

static void note_write(void *data, struct folio *folio)
{
	struct dirty_flush_kunit *k = data;

	if (current != k->task || !k->reclaims)
		return;
	k->got.pending_at_write |= current->tlb_ubc.writable;
	if (k->got.nr_written < MAX_DIRTY)
		k->got.written[k->got.nr_written++] = folio;
}

static void note_stat(void *data, int nid, unsigned long nr_scanned, unsigned long nr_reclaimed,
		      struct reclaim_stat *stat)
{
	struct dirty_flush_kunit *k = data;

	if (current != k->task || !k->reclaims)
		return;
	k->got.nr_scanned = nr_scanned;
	k->got.stat = *stat;
}

static void note_free(void *data, struct page *page, unsigned int order)
{
	struct dirty_flush_kunit *k = data;
	unsigned int i;

	if (current != k->task)
		return;
	for (i = 0; i < k->nr; i++) {
		if (page != &k->folios[i].folio->page)
			continue;
		k->folios[i].freed = true;
		k->got.pending_at_free |= k->reclaims && current->tlb_ubc.flush_required;
	}
}

static void note_ipi(void *data, int reason, unsigned long pages)
{
	struct dirty_flush_kunit *k = data;

	if (current == k->task && k->reclaims && reason == TLB_REMOTE_SEND_IPI)
		k->got.nr_ipis++;
}

static void dirty_flush_window(void)
{
	struct kunit *test = READ_ONCE(dirty_flush_test);
	struct dirty_flush_kunit *k = test->priv;

	/* Others may reclaim, too. */
	if (current != k->task || !k->reclaims || k->got.nr_windows == MAX_DIRTY)
		return;
	k->got.pending[k->got.nr_windows] = current->tlb_ubc.writable;
	if (!k->got.nr_windows++ && k->in_window)
		k->in_window(test);
}

static inline int dirty_flush_begin(struct kunit *test, enum mm_batch_mode mode)
{
	struct dirty_flush_kunit *k = kunit_kzalloc(test, sizeof(*k), GFP_KERNEL);
	int error = k ? 0 : -ENOMEM;

	/* The mm is on no other CPU unless the test has it there. */
	error = error ?: set_cpus_allowed_ptr(current, cpumask_of(raw_smp_processor_id()));
	error = error ?: kunit_attach_mm();
	error = error ?: register_trace_mm_batch_run(note_batch, k);
	error = error ?: register_trace_mm_vmscan_write_folio(note_write, k);
	error = error ?: register_trace_mm_vmscan_reclaim_pages(note_stat, k);
	error = error ?: register_trace_mm_page_free(note_free, k);
	/* Nobody else has the event. */
	if (IS_ENABLED(CONFIG_X86))
		error = error ?: register_trace_tlb_flush(note_ipi, k);
	if (error)
		return error;
	k->task = current;
	k->free_slots = get_nr_swap_pages();
	k->huge_orders = READ_ONCE(huge_anon_orders_always);
	k->mode_before = mm_batch_dirty_flush_mode();
	k->batch_mode_before = mm_batch_folio_batch_mode();
	test->priv = k;
	WRITE_ONCE(dirty_flush_test, test);
	WRITE_ONCE(mm_batch_dirty_flush_window, dirty_flush_window);
	mm_batch_dirty_flush_set_mode(mode);
	mm_batch_folio_batch_set_mode(MM_BATCH_OFF);
	return 0;
}

/* With batches, in the mode of a parameter. */
static inline int folio_batch_begin(struct kunit *test)
{
	const struct mode_param *param = test->param_value;
	int error = dirty_flush_begin(test, MM_BATCH_OFF);

	if (!error)
		mm_batch_folio_batch_set_mode(param->mode);
	return error;
}

/* Folios of one page each, which one VMA maps, one behind the other. */
static inline void map_neighbours(struct kunit *test, unsigned int nr)
{
	struct dirty_flush_kunit *k = test->priv;

	k->stride = PAGE_SIZE;
	map_many_dirty(test, nr, 0, false);
}

/* Also where a test was aborted, or has not begun. */
static inline void dirty_flush_exit(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;

	if (!k)
		return;
	mm_batch_dirty_flush_set_mode(k->mode_before);
	mm_batch_folio_batch_set_mode(k->batch_mode_before);
	WRITE_ONCE(huge_anon_orders_always, k->huge_orders);
	WRITE_ONCE(mm_batch_dirty_flush_window, NULL);
	if (IS_ENABLED(CONFIG_X86))
		unregister_trace_tlb_flush(note_ipi, k);
	unregister_trace_mm_page_free(note_free, k);
	unregister_trace_mm_vmscan_reclaim_pages(note_stat, k);
	unregister_trace_mm_vmscan_write_folio(note_write, k);
	unregister_trace_mm_batch_run(note_batch, k);
	tracepoint_synchronize_unregister();
}

static inline unsigned long count_swapped(void)
{
	/* Too much for the stack. */
	static unsigned long events[NR_VM_EVENT_ITEMS];

	all_vm_events(events);
	return events[PSWPOUT];
}

/* Reclaims these folios, in this order. What became of them is overwritten by the next list. */
static inline const struct reclaimed *reclaim_list(struct kunit *test, struct dirty_folio *first,
						   unsigned int nr)
{
	struct dirty_flush_kunit *k = test->priv;
	struct reclaimed *got = &k->got;
	unsigned long swapped;
	LIST_HEAD(folios);
	unsigned int i;

	lru_add_drain();
	for (i = 0; i < nr; i++) {
		KUNIT_ASSERT_TRUE(test, folio_isolate_lru(first[i].folio));
		list_add(&first[i].folio->lru, &folios);
	}
	memset(got, 0, sizeof(*got));
	swapped = count_swapped();
	if (k->other) {
		/* Nothing else runs there, so that no flush finds it between two tasks. */
		sched_set_fifo(k->other->task);
		wait_for_other_cpu(k->other);
		/* It has written to what is mapped, and is not clean on purpose. */
		for (i = 0; i < nr; i++) {
			if (folio_mapped(first[i].folio) && folio_test_swapbacked(first[i].folio))
				other_cpu_stores(test, k->other, first[i].addr,
						 dirty_content(&first[i], 0));
		}
	}
	k->reclaims = true;
	/* Until the next interrupt ends, which reschedules it. */
	if (k->reschedule)
		set_tsk_need_resched(current);
	got->nr_reclaimed = reclaim_pages(&folios);
	k->reclaims = false;
	if (k->other)
		sched_set_normal(k->other->task, 0);
	got->pending_after = current->tlb_ubc.flush_required || current->tlb_ubc.writable;
	got->nr_swapped = count_swapped() - swapped;
	lru_add_drain();
	return got;
}

/* Whether a folio, if a flush is owed for it, waits for that with others. */
static inline bool may_wait(const struct dirty_folio *f)
{
	return mm_batch_dirty_flush_mode() != MM_BATCH_OFF && !f->file &&
	       f->nr_pages < PAGE_LIMIT && (LARGE_FOLIOS_WAIT || f->nr_pages == 1);
}

/*
 * All but one folio were written and freed: first those that do not wait, then the others, which
 * are one batch if there are both; each in the order of the list.
 */
static inline void expect_written(struct kunit *test, const struct dirty_folio *but)
{
	struct dirty_flush_kunit *k = test->priv;
	const struct reclaimed *got = &k->got;
	unsigned int i, waits, nr = 0, pages = 0;

	for (waits = 0; waits <= 1; waits++) {
		for (i = 0; i < k->nr; i++) {
			const struct dirty_folio *f = &k->folios[i];

			if (may_wait(f) != waits)
				continue;
			pages += f->nr_pages;
			if (f == but)
				continue;
			if (nr < got->nr_written)
				KUNIT_EXPECT_PTR_EQ_MSG(test, got->written[nr], f->folio,
							"folio %u", i);
			KUNIT_EXPECT_TRUE_MSG(test, f->freed, "folio %u", i);
			nr++;
		}
	}
	KUNIT_EXPECT_EQ(test, got->nr_scanned, pages);
	KUNIT_EXPECT_FALSE(test, got->pending_at_write);
	KUNIT_EXPECT_FALSE(test, got->pending_at_free);
	KUNIT_EXPECT_FALSE(test, got->pending_after);
	/* A fault of a folio that was left locked waits forever. */
	KUNIT_ASSERT_EQ(test, got->nr_written, nr);
}

static inline void expect_contents(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;
	unsigned int i;

	for (i = 0; i < k->nr; i++)
		expect_dirty_content(test, &k->folios[i], false);
}

/* All were, and nothing else became of any. */
static inline void expect_all_written(struct kunit *test)
{
	struct dirty_flush_kunit *k = test->priv;
	const struct reclaimed *got = &k->got;
	unsigned int i, pages = 0;

	expect_written(test, NULL);
	for (i = 0; i < k->nr; i++)
		pages += k->folios[i].nr_pages;
	KUNIT_EXPECT_EQ(test, got->nr_reclaimed, pages);
	KUNIT_EXPECT_EQ(test, got->nr_swapped, pages);
	KUNIT_EXPECT_EQ(test, k->free_slots - get_nr_swap_pages(), pages);
	KUNIT_EXPECT_EQ(test, got->stat.nr_activate[0], 0);
	KUNIT_EXPECT_EQ(test, got->stat.nr_activate[1], 0);
	KUNIT_EXPECT_EQ(test, got->stat.nr_unmap_fail, 0);
	expect_contents(test);
}

/* These batches were flushed for, each once. */
static inline void expect_batches(struct kunit *test, const unsigned int *pages, unsigned int count)
{
	const struct reclaimed *got = &((struct dirty_flush_kunit *)test->priv)->got;
	unsigned int i;

	KUNIT_EXPECT_EQ(test, got->nr_batches, count);
	KUNIT_EXPECT_EQ(test, got->nr_windows, count);
	for (i = 0; i < min(count, got->nr_batches); i++) {
		KUNIT_EXPECT_EQ_MSG(test, got->batches[i], pages[i], "batch %u", i);
		KUNIT_EXPECT_TRUE_MSG(test, got->pending[i], "batch %u", i);
	}
}

#endif
