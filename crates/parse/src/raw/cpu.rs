//! Which instructions the parser uses: found once at run time; `HEADRACE_CPU` forces one set (tests, bug reports).

use std::sync::OnceLock;

/// Instructions of the structural pass and of the loops over columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuPath {
    /// What every processor has.
    Portable,
    /// ARM's 16-byte vectors, for the structural pass.
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// 32-byte vectors.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 64-byte vectors, compares into masks, compress-store (VBMI2).
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// Names the features of a path twice from one list: for the detection and for the compiler.
#[cfg(target_arch = "x86_64")]
macro_rules! x86_path {
    ($detected:ident, $run:ident, $enabled:literal, [$($feature:tt),*]) => {
        fn $detected() -> bool {
            const LIST: &[&str] = &[$($feature),*];
            debug_assert_eq!(LIST.join(","), $enabled);
            $(is_x86_feature_detected!($feature))&&*
        }

        #[target_feature(enable = $enabled)]
        fn $run<T: Task>(task: T) -> T::Output {
            task.run()
        }
    };
}
#[cfg(target_arch = "x86_64")]
x86_path!(has_avx2, run_avx2, "avx2,bmi1,bmi2,lzcnt,popcnt", ["avx2", "bmi1", "bmi2", "lzcnt", "popcnt"]);
#[cfg(target_arch = "x86_64")]
x86_path!(
    has_avx512,
    run_avx512,
    "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt",
    ["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512vbmi2", "bmi1", "bmi2", "lzcnt", "popcnt"]
);

/// Work that is compiled once per instruction set: implementations say `#[inline(always)]`, and so does what they call in
/// their inner loops.
pub trait Task {
    /// Result.
    type Output;
    /// Does the work.
    fn run(self) -> Self::Output;
}

impl CpuPath {
    /// All paths this processor can run, fastest first.
    pub fn available() -> Vec<CpuPath> {
        let mut paths = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if has_avx512() && has_avx2() {
                paths.push(CpuPath::Avx512);
            }
            if has_avx2() {
                paths.push(CpuPath::Avx2);
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            paths.push(CpuPath::Neon);
        }
        paths.push(CpuPath::Portable);
        paths
    }

    /// Name, as `HEADRACE_CPU` spells it.
    pub fn name(self) -> &'static str {
        match self {
            CpuPath::Portable => "portable",
            #[cfg(target_arch = "aarch64")]
            CpuPath::Neon => "neon",
            #[cfg(target_arch = "x86_64")]
            CpuPath::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            CpuPath::Avx512 => "avx512",
        }
    }

    /// Whether vectors hold four or more 64-bit numbers, with shifts by different counts: only then are eight fields at once
    /// faster than one after the other.
    pub fn has_wide_vectors(self) -> bool {
        match self {
            CpuPath::Portable => false,
            #[cfg(target_arch = "aarch64")]
            CpuPath::Neon => false,
            #[cfg(target_arch = "x86_64")]
            CpuPath::Avx2 | CpuPath::Avx512 => true,
        }
    }

    /// Runs the copy of a task that was compiled for the path's instructions.
    #[inline]
    pub fn run<T: Task>(self, task: T) -> T::Output {
        match self {
            CpuPath::Portable => task.run(),
            #[cfg(target_arch = "aarch64")]
            CpuPath::Neon => task.run(),
            // SAFETY: `available` is where paths come from (see `cpu_path` and the tests), and gives this one only when the
            // processor has its features: the list is the same.
            #[cfg(target_arch = "x86_64")]
            CpuPath::Avx2 => unsafe { run_avx2(task) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            CpuPath::Avx512 => unsafe { run_avx512(task) },
        }
    }
}

/// The path of this process: the fastest, or the one `HEADRACE_CPU` names.
///
/// # Errors
/// A sentence, when the variable names none that this processor has.
pub fn cpu_path() -> Result<CpuPath, String> {
    static PATH: OnceLock<Result<CpuPath, String>> = OnceLock::new();
    PATH.get_or_init(|| choose(std::env::var("HEADRACE_CPU").ok().as_deref())).clone()
}

fn choose(wanted: Option<&str>) -> Result<CpuPath, String> {
    let available = CpuPath::available();
    let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty()) else { return Ok(available[0]) };
    available.iter().copied().find(|path| path.name() == wanted).ok_or_else(|| {
        let names: Vec<_> = available.iter().map(|path| path.name()).collect();
        format!("HEADRACE_CPU is `{wanted}`; this processor has {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_the_processor_lacks_is_refused() {
        assert_eq!(choose(Some("portable")), Ok(CpuPath::Portable));
        assert_eq!(choose(Some("")), choose(None));
        let refused = choose(Some("mmx")).unwrap_err();
        assert!(refused.starts_with("HEADRACE_CPU is `mmx`; this processor has ") && refused.ends_with("portable"));
    }
}
