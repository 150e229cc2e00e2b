// SPDX-License-Identifier: GPL-2.0

//! What the shim checks with, and what models nothing of mm: the runner of a loom model, the replay
//! of an interleaving that failed, and the log of what a run does.

#[cfg(loom)]
pub mod model;
pub mod order;
#[cfg(loom)]
mod replay;
