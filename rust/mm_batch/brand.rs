// SPDX-License-Identifier: GPL-2.0

//! Tokens of one transaction that do not go with those of another.

use core::marker::PhantomData;

/// Makes a lifetime a name: it cannot be made longer or shorter.
pub(crate) type Brand<'r> = PhantomData<fn(&'r ()) -> &'r ()>;
