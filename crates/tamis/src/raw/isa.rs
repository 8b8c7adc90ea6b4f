//! This machine's instruction sets. Only this file queries them.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// The detected instruction set. Values come only from detection, so having one proves that its
/// instructions can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Isa(Level);

/// Instructions beyond the architecture's baseline. A higher level includes the lower ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Level {
    /// None.
    Portable = 1,
    /// `avx2,bmi1,bmi2,popcnt`
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// `avx512f,avx512dq,avx512bw` in addition.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// `neon`, part of the architecture's baseline.
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    Neon,
}

impl Isa {
    /// The best of this machine. Known at compile time if the program is compiled only for such
    /// machines, otherwise a load and a comparison.
    #[inline(always)]
    pub(crate) fn best() -> Self {
        static FOUND: AtomicU8 = AtomicU8::new(0);
        if let Some(level) = Level::COMPILED_FOR {
            return Self(level);
        }
        let found = FOUND.load(Relaxed);
        #[cfg(target_arch = "x86_64")]
        if found == Level::Avx512 as u8 {
            return Self(Level::Avx512);
        } else if found == Level::Avx2 as u8 {
            return Self(Level::Avx2);
        }
        match found {
            0 => Self::detect(&FOUND),
            _ => Self(Level::Portable),
        }
    }

    #[cold]
    fn detect(found: &AtomicU8) -> Self {
        let best = *Self::available().last().unwrap_or(&Self(Level::Portable));
        found.store(best.0 as u8, Relaxed);
        best
    }

    /// All of this machine, the best last. With `--cfg tamis_portable` only the portable one, whose
    /// loads a sanitizer sees.
    #[allow(unexpected_cfgs, reason = "set by .ci/sanitizers")]
    pub(crate) fn available() -> Vec<Self> {
        #[allow(unused_mut, reason = "some processors have no other")]
        let mut all = vec![Self(Level::Portable)];
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        all.push(Self(Level::Neon));
        #[cfg(target_arch = "x86_64")]
        if !cfg!(tamis_portable) {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("popcnt");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw");
            all.extend(avx2.then_some(Self(Level::Avx2)));
            all.extend((avx2 && avx512).then_some(Self(Level::Avx512)));
        }
        all
    }

    #[inline(always)]
    pub(crate) const fn level(self) -> Level {
        self.0
    }

    /// Whether it includes that level.
    #[inline(always)]
    pub(crate) fn has(self, level: Level) -> bool {
        self.0 >= level
    }

    /// `Some` if one or two keys are tested by a few instructions in place, without a call to
    /// specially compiled code.
    pub(crate) fn in_place(self) -> Option<InPlace> {
        InPlace::LEVEL
            .is_some_and(|level| self.has(level))
            .then_some(InPlace(()))
    }

    /// Runs a batch in code compiled for these instructions.
    #[inline(always)]
    pub(crate) fn run<B: Batch>(self, batch: B) {
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
            fn avx2<B: Batch>(batch: B) {
                batch.run(Isa(Level::Avx2));
            }
            // The AVX-512 code itself is in assembly.
            #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
            fn avx512<B: Batch>(batch: B) {
                batch.run(Isa(Level::Avx512));
            }
            match self.0 {
                Level::Portable => {}
                // SAFETY: the level was detected.
                Level::Avx2 => return unsafe { avx2(batch) },
                // SAFETY: the level was detected.
                Level::Avx512 => return unsafe { avx512(batch) },
            }
        }
        batch.run(self);
    }
}

/// Work on many keys, for [`Isa::run`]. A closure wouldn't do: nothing makes the compiler inline it
/// and so compile it for other instructions.
pub(crate) trait Batch {
    /// Implementations must be `#[inline(always)]`.
    fn run(self, isa: Isa);
}

/// Proof of instructions that need no call, known at compile time: AVX-512 on x86_64, in assembly,
/// with registers that older machines don't have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InPlace(());

impl InPlace {
    #[cfg(target_arch = "x86_64")]
    const LEVEL: Option<Level> = Some(Level::Avx512);
    #[cfg(not(target_arch = "x86_64"))]
    const LEVEL: Option<Level> = Level::COMPILED_FOR;
}

impl From<InPlace> for Isa {
    #[inline(always)]
    fn from(InPlace(()): InPlace) -> Self {
        const { Isa(InPlace::LEVEL.unwrap()) }
    }
}

impl Level {
    #[cfg(target_arch = "x86_64")]
    const COMPILED_FOR: Option<Self> = if cfg!(all(
        target_feature = "avx2",
        target_feature = "bmi1",
        target_feature = "bmi2",
        target_feature = "popcnt",
        target_feature = "avx512f",
        target_feature = "avx512dq",
        target_feature = "avx512bw"
    )) {
        Some(Self::Avx512)
    } else {
        None
    };
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    const COMPILED_FOR: Option<Self> = Some(Self::Neon);
    #[cfg(not(any(
        target_arch = "x86_64",
        all(target_arch = "aarch64", target_endian = "little")
    )))]
    const COMPILED_FOR: Option<Self> = Some(Self::Portable);
}

/// Prefetches the cache line of `place`. A hint: nothing is read, so any address will do.
#[inline(always)]
pub fn prefetch<T>(place: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: prefetching never faults, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) }
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        // SAFETY: as above; the instruction changes no register or memory.
        unsafe {
            std::arch::asm!(
                "prfm pldl1keep, [{place}]",
                place = in(reg) place,
                options(nostack, preserves_flags, readonly)
            );
        }
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = place;
}
