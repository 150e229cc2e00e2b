// SPDX-License-Identifier: GPL-2.0

//! Per-CPU data.
//!
//! | here                 | in 7.3, include/linux/percpu-defs.h                                |
//! |----------------------|--------------------------------------------------------------------|
//! | [`PerCpu::get`]      | `get_cpu_var()`, `put_cpu_var()`: preemption is off between them   |
//! | [`PerCpu::remote`]   | `per_cpu_ptr()` of another CPU                                     |
//!
//! A thread of a model says on which CPU it runs. Two that say the same exclude each other in
//! [`PerCpu::get`], as a task that is not preempted does. Nothing excludes [`PerCpu::remote`].
//! Left out: interrupts on the same CPU, migration between two accesses.

use crate::sync::{
    step,
    Mutex, //
};

#[derive(Debug)]
struct Cpu<T> {
    value: T,
    /// Held by the thread that runs there with preemption off.
    running: Mutex<()>,
}

/// One value for each CPU.
#[derive(Debug)]
pub struct PerCpu<T>(Vec<Cpu<T>>);

impl<T> PerCpu<T> {
    /// `value` makes that of each of `nr` CPUs.
    pub fn new(nr: usize, value: impl Fn(usize) -> T) -> Self {
        let cpu = |cpu| Cpu {
            value: value(cpu),
            running: Mutex::new(()),
        };
        Self((0..nr).map(cpu).collect())
    }

    /// Runs `with` on `cpu`, with preemption off.
    ///
    /// # Panics
    ///
    /// If there is no such CPU.
    pub fn get<R>(&self, cpu: usize, with: impl FnOnce(&T) -> R) -> R {
        let cpu_data = &self.0[cpu];
        let _preemption = cpu_data
            .running
            .lock()
            .expect("a thread of the model panicked");
        step!("preemption is off on CPU {cpu}");
        with(&cpu_data.value)
    }

    /// The value of a CPU, from any other.
    ///
    /// # Panics
    ///
    /// If there is no such CPU.
    pub fn remote(&self, cpu: usize) -> &T {
        &self.0[cpu].value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        raced::Raced,
        sync::{
            explore,
            thread,
            Arc, //
        }, //
    };

    fn add(nr: &Raced<u32>) {
        nr.set(nr.get() + 1);
    }

    #[test]
    fn two_on_a_cpu_exclude_each_other() {
        explore(|| {
            let counts = Arc::new(PerCpu::new(1, |_| Raced::new(0)));
            let theirs = counts.clone();
            let other = thread::spawn(move || theirs.get(0, add));
            counts.get(0, add);
            other.join().expect("the other thread panicked");
            assert_eq!(counts.remote(0).get(), 2);
        });
    }

    #[cfg(loom)]
    #[test]
    #[should_panic(expected = "Causality violation")]
    fn another_cpu_is_not_excluded() {
        explore(|| {
            let counts = Arc::new(PerCpu::new(2, |_| Raced::new(0)));
            let theirs = counts.clone();
            let other = thread::spawn(move || theirs.get(0, add));
            counts.get(1, |_| counts.remote(0).get());
            other.join().expect("the other thread panicked");
        });
    }
}
