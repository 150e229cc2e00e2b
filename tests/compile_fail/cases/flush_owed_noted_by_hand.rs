// SPDX-License-Identifier: GPL-2.0

//! error: E0133 noted
//! Nor does anybody say so who does not promise that there is a note of it.

use mm_batch::unmap::FlushOwed;

pub fn left(owed: FlushOwed) {
    #[cfg(bad)]
    let owed = FlushOwed::noted();
    owed.left_with_task();
}
