// SPDX-License-Identifier: GPL-2.0

//! error: E0423 private
//! That entries are counted is said by the stage that counts them.

use mm_batch::to_swap::SwapCounted;

pub fn counted(counted: SwapCounted) -> SwapCounted {
    #[cfg(bad)]
    let counted = SwapCounted(());
    counted
}
