// SPDX-License-Identifier: GPL-2.0

//! The one place that says std or loom (`--cfg loom`). Everything else uses what is exported here.

#[cfg(not(loom))]
pub use std::{
    sync::{
        atomic,
        Arc,
        Mutex, //
    },
    thread, //
};

#[cfg(loom)]
pub use loom::{
    sync::{
        atomic,
        Arc,
        Mutex, //
    },
    thread, //
};
