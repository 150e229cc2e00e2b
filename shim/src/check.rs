// SPDX-License-Identifier: GPL-2.0

//! What the shim checks with, and what models nothing of mm: the runner of a loom model, the replay
//! of an interleaving that failed, the runner of what is tried at random, and the log of what a run
//! does.

#[cfg(loom)]
pub mod model;
pub mod order;
#[cfg(shuttle)]
pub mod random;
#[cfg(loom)]
mod replay;
#[cfg(any(loom, shuttle))]
mod target;
