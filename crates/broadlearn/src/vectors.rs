//! Loops compiled once more for processors with wider vectors.
#![allow(unsafe_code)]

/// Loops over numbers.
pub(crate) trait Loops {
    /// Runs them. To be marked `#[inline(always)]`, as all that it calls: what is not inlined into [`widest`] is compiled without
    /// its vectors. (A closure in place of this trait is inlined only if it is short.)
    fn run(self);
}

/// Runs loops with the widest vectors of this processor. The bits are the same with all of them, because the compiler
/// neither fuses nor reorders floating-point operations.
///
/// The `unsafe` blocks are sound: the functions are safe code whose only demand is a processor with the
/// instruction sets of their `target_feature` attributes, and the conditions right before the calls ask for these.
pub(crate) fn widest(loops: impl Loops) {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("avx512dq") {
        // SAFETY: AVX-512 was detected in the line above.
        return unsafe { run_with_avx512(loops) };
    }
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
        // SAFETY: AVX2 and FMA were detected in the line above.
        return unsafe { run_with_avx2(loops) };
    }
    loops.run();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq")]
fn run_with_avx512(loops: impl Loops) {
    loops.run();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn run_with_avx2(loops: impl Loops) {
    loops.run();
}
