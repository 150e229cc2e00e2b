// SPDX-License-Identifier: GPL-2.0

//! error: E0423 private
//! That a flush may be owed is said by the port that has noted it.

use mm_batch::unmap::FlushOwed;

pub fn left(owed: FlushOwed) {
    #[cfg(bad)]
    let owed = FlushOwed(());
    owed.left_with_task();
}
