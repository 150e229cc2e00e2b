/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_BATCH_ANON_UNMAP_KUNIT_H
#define _MM_BATCH_ANON_UNMAP_KUNIT_H
/*
 * For the suites of anon_unmap: its modes, and a folio that goes to swap or stays.
 */

#include "mm_batch_kunit.h"
#include "mm_batch_swap_kunit.h"

/* A batch in C is a build's. */
static const struct mode_param anon_modes[] = {
	{ "off", MM_BATCH_OFF },
#ifdef MM_BATCH_ANON_UNMAP_C
	{ "c", MM_BATCH_C },
#endif
	{ "rust", MM_BATCH_RUST },
};

KUNIT_ARRAY_PARAM_DESC(anon_mode, anon_modes, name);

/* All but "off", which is the first. */
static inline const void *anon_batch_gen_params(struct kunit *test, const void *prev, char *desc)
{
	return anon_mode_gen_params(test, prev ?: &anon_modes[0], desc);
}

static enum mm_batch_mode anon_mode_before;

static inline int anon_unmap_init(struct kunit *test)
{
	const struct mode_param *param = test->param_value;

	anon_mode_before = mm_batch_anon_unmap_mode();
	if (param)
		mm_batch_anon_unmap_set_mode(param->mode);
	return unmap_kunit_begin(test) ?: needs_thp_swap(test);
}

static inline void anon_unmap_exit(struct kunit *test)
{
	unmap_kunit_end(test);
	mm_batch_anon_unmap_set_mode(anon_mode_before);
}

/* Of a run that fails, no page goes. */
static inline bool all_or_nothing(void)
{
	return mm_batch_anon_unmap_mode() != MM_BATCH_OFF;
}

/* The runs that the present mode of anon_unmap is to find. */
static inline struct runs expected_anon_runs(struct mapping *m)
{
	return expected_runs_in(mm_batch_anon_unmap_mode(), m);
}

/* The first @count of these runs were cleared, with one flush for each, and no other. */
static inline void expect_cleared(struct kunit *test, const struct unmapped *r,
				  const struct runs *want, unsigned int count)
{
	/* One that x86 puts off is told without a range. */
	if (IS_ENABLED(CONFIG_X86) && r->pending) {
		KUNIT_EXPECT_EQ(test, r->flushes, count);
		KUNIT_EXPECT_EQ(test, r->runs.count, 0);
		return;
	}
	KUNIT_EXPECT_EQ(test, r->runs.count, count);
	expect_runs(test, &r->runs, want, min(r->runs.count, want->count));
}

/* All that is mapped goes to swap, in the runs that this mode is to find, and is there. */
static __maybe_unused noinline_for_stack struct swapped
goes(struct kunit *test, struct mapping *m, enum ttu_flags flags)
{
	struct runs want = expected_anon_runs(m);
	int refs = folio_ref_count(m->folio), mapped = folio_mapcount(m->folio);
	bool dirty = folio_test_dirty(m->folio);
	struct swapped before, r;
	unsigned int i;

	look(m, &before);
	r = swap_out(test, m, flags);
	expect_cleared(test, &r.all, &want, want.count);
	for (i = 0; i < NR; i++) {
		dirty |= before.pages[i].dirty;
		if (before.pages[i].mapped)
			expect_swapped(test, m, &r.pages[i], &before.pages[i], i);
	}
	KUNIT_EXPECT_EQ(test, r.nr, before.nr + mapped);
	KUNIT_EXPECT_EQ(test, r.all.anon, mapped);
	KUNIT_EXPECT_EQ(test, r.all.swap, -mapped);
	KUNIT_EXPECT_EQ(test, r.all.file, 0);
	KUNIT_EXPECT_EQ(test, r.all.shmem, 0);
	KUNIT_EXPECT_EQ(test, r.all.mapcount, 0);
	KUNIT_EXPECT_EQ(test, refs - r.all.refs, mapped);
	KUNIT_EXPECT_EQ(test, r.all.hiwater, r.all.rss);
	KUNIT_EXPECT_EQ(test, r.all.dirty, dirty);
	KUNIT_EXPECT_FALSE(test, list_empty(&m->mm->mmlist));
	return r;
}

/*
 * The folio stays, and its first @converted pages are swapped out all the same. The others
 * are as they were, counts included; and it can be swapped out later.
 */
static __maybe_unused noinline_for_stack struct swapped
stays(struct kunit *test, struct mapping *m, unsigned int converted, enum ttu_flags flags)
{
	struct runs want = expected_anon_runs(m);
	int refs = folio_ref_count(m->folio);
	struct swapped before, r;
	unsigned int i, tried = 0;

	look(m, &before);
	r = swap_out(test, m, flags);
	while (tried < want.count && end_of_run(&want, tried++) <= converted)
		;
	expect_cleared(test, &r.all, &want, tried);
	for (i = 0; i < NR; i++) {
		if (i < converted)
			expect_swapped(test, m, &r.pages[i], &before.pages[i], i);
		else
			expect_as_before(test, &r.pages[i], &before.pages[i], i);
	}
	KUNIT_EXPECT_EQ(test, r.all.anon, converted);
	KUNIT_EXPECT_EQ(test, r.all.swap, -(long)converted);
	KUNIT_EXPECT_EQ(test, r.all.mapcount, NR - converted);
	KUNIT_EXPECT_EQ(test, refs - r.all.refs, converted);
	return r;
}

#endif
