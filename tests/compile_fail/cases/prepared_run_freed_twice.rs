// SPDX-License-Identifier: GPL-2.0

//! error: E0382 run
//! A prepared run is freed by name or by being dropped, and once.

use mm_batch::free::{ContigMm, PreparedRun};

pub fn free<M: ContigMm>(run: PreparedRun<'_, M>) {
    run.free();
    #[cfg(bad)]
    run.free();
}
