// SPDX-License-Identifier: GPL-2.0

//! The shim itself: what each of its operations orders, and what it does not, as in the kernel.

mod acquire;
mod gup;
mod locks;
mod ports;
mod relaxed;
mod smp;
mod tlb;
mod weak;
mod window;
