// SPDX-License-Identifier: GPL-2.0

//! error: E0382 pages
//! Preparing pages consumes them: their references are dropped.

use mm_batch::free::{ContigMm, PreparedRun, Refcounted, Section};

pub fn prepare(mm: &impl ContigMm, pages: Section<Refcounted>) {
    let (run, _rest) = PreparedRun::first_of(mm, pages);
    run.free();
    #[cfg(bad)]
    let _ = mm.prepare_run(pages);
}
