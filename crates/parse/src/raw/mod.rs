//! All `unsafe` code of the crate; each block has its proof. Elsewhere the compiler refuses it.
//!
//! - [`memory`]: aligned, recycled memory, handed out as typed slices.
//! - [`fields`]: loads of a few bytes around a field, proved by positions that were checked and by padding.
//! - [`floating`]: numbers with a point anywhere, one per vector.
//! - [`structure`]: the structural pass, with one small kernel per instruction set.
//! - [`high`]: the pass that finds the bytes above 0x7F.
//! - [`candidates`]: the pass that finds the bytes of which tokens are made.
//! - [`cpu`]: which instructions there are, and code compiled for them.
//! - [`arrays`]: Arrow arrays of converted values.

#![allow(unsafe_code)]

pub mod arrays;
pub mod candidates;
pub mod cpu;
pub mod fields;
pub mod floating;
#[cfg(target_arch = "x86_64")]
mod floating_avx2;
pub mod high;
pub mod memory;
#[cfg(target_arch = "aarch64")]
mod neon;
pub mod portable;
pub mod structure;
#[cfg(target_arch = "x86_64")]
mod x86;
