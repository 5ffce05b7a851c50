//! Which instructions the parser uses: found once at run time; `HEADRACE_CPU` forces one set (tests, bug reports).

use std::sync::OnceLock;

use headrace_types::{CoreError, ErrorKind};

/// Instructions of the structural pass and of the loops over columns. There are only values that this processor can run:
/// they come from [`CpuPath::available`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuPath(Kind);

/// The instruction sets there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
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
        #[cfg_attr(debug_assertions, inline(never))] // see `CpuPath::run_part`
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

#[cfg_attr(debug_assertions, inline(never))] // see `CpuPath::run_part`
#[cfg_attr(not(debug_assertions), inline(always))]
fn run_directly<T: Task>(task: T) -> T::Output {
    task.run()
}

/// Work that is compiled once per instruction set: implementations say `#[inline(always)]`, and so does what they call in
/// their inner loops.
pub trait Task {
    /// Result.
    type Output;
    /// Does the work.
    fn run(self) -> Self::Output;
}

impl CpuPath {
    /// What every processor can run.
    pub const PORTABLE: CpuPath = CpuPath(Kind::Portable);

    /// For the choice of a kernel.
    pub(super) fn kind(self) -> Kind {
        self.0
    }

    /// All paths this processor can run, fastest first.
    pub fn available() -> Vec<CpuPath> {
        let mut paths = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if has_avx512() && has_avx2() {
                paths.push(CpuPath(Kind::Avx512));
            }
            if has_avx2() {
                paths.push(CpuPath(Kind::Avx2));
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            paths.push(CpuPath(Kind::Neon));
        }
        paths.push(CpuPath::PORTABLE);
        paths
    }

    /// Name, as `HEADRACE_CPU` spells it.
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Portable => "portable",
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => "neon",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512",
        }
    }

    /// Whether vectors hold four or more 64-bit numbers, with shifts by different counts: only then are eight fields at once
    /// faster than one after the other.
    pub fn has_wide_vectors(self) -> bool {
        match self.0 {
            Kind::Portable => false,
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => false,
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 | Kind::Avx512 => true,
        }
    }

    /// Runs the copy of a task that was compiled for the path's instructions.
    #[inline]
    pub fn run<T: Task>(self, task: T) -> T::Output {
        match self.0 {
            Kind::Portable => run_directly(task),
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => run_directly(task),
            // SAFETY: a value of this kind is only made by `available`, and only when the processor has the features: the
            // list is the same.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { run_avx2(task) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { run_avx512(task) },
        }
    }

    /// Runs one of many parts of a task that runs on this path. In builds with assertions, which are for tests, each part is
    /// a function of its own; otherwise they are one, which runs up to a tenth faster and takes the compiler five times as
    /// long.
    #[inline(always)]
    pub fn run_part<T: Task>(self, part: T) -> T::Output {
        if cfg!(debug_assertions) { self.run(part) } else { part.run() }
    }
}

/// The path of this process: the fastest, or the one `HEADRACE_CPU` names.
///
/// # Errors
/// `Specification` when the variable names none that this processor has.
pub fn cpu_path() -> Result<CpuPath, CoreError> {
    static PATH: OnceLock<Result<CpuPath, CoreError>> = OnceLock::new();
    PATH.get_or_init(|| choose(std::env::var("HEADRACE_CPU").ok().as_deref())).clone()
}

fn choose(wanted: Option<&str>) -> Result<CpuPath, CoreError> {
    let available = CpuPath::available();
    let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty()) else { return Ok(available[0]) };
    available.iter().copied().find(|path| path.name() == wanted).ok_or_else(|| {
        let names: Vec<_> = available.iter().map(|path| path.name()).collect();
        CoreError::new(ErrorKind::Specification, "HEADRACE_CPU names no instruction set that this processor can run")
            .found(wanted)
            .expected(format!("one of: {}", names.join(", ")))
            .hint("Unset HEADRACE_CPU: then the fastest of them is used.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_the_processor_lacks_is_refused() {
        assert_eq!(choose(Some("portable")), Ok(CpuPath::PORTABLE));
        assert_eq!(choose(Some("")), choose(None));
        let refused = choose(Some("mmx")).unwrap_err();
        assert_eq!((refused.kind, refused.found.as_deref()), (ErrorKind::Specification, Some("mmx")));
        let expected = refused.expected.unwrap();
        assert!(expected.starts_with("one of: ") && expected.ends_with("portable"), "{expected}");
        let names = expected["one of: ".len()..].split(", ");
        assert!(
            names
                .map(|name| choose(Some(name)).unwrap().name())
                .eq(CpuPath::available().iter().map(|path| path.name()))
        );
        assert!(refused.hint.unwrap().starts_with("Unset HEADRACE_CPU"));
    }
}
