// SPDX-License-Identifier: GPL-2.0

//! Tokens of one transaction that do not go with those of another.

#![forbid(unsafe_code)]

use core::marker::PhantomData;

/// Keeps a token with the task that it is of.
pub(crate) type OfTask = PhantomData<*mut ()>;

/// The same, and makes a lifetime a name: it cannot be made longer or shorter.
pub(crate) type Brand<'r> = PhantomData<(fn(&'r ()) -> &'r (), OfTask)>;
