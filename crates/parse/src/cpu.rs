//! Which instructions the parser uses: found once at run time; `HEADRACE_CPU` forces one set (tests, bug reports).

use std::sync::OnceLock;

/// Instructions of the structural pass and of the column loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuPath {
    /// What every processor of the architecture has.
    Portable,
    /// 32-byte vectors.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 64-byte vectors, compares into masks, compress-store (VBMI2).
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl CpuPath {
    /// All paths this processor can run, fastest first.
    pub fn available() -> Vec<CpuPath> {
        let mut paths = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt")
                && is_x86_feature_detected!("pclmulqdq");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512cd")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512vbmi2");
            if avx2 && avx512 {
                paths.push(CpuPath::Avx512);
            }
            if avx2 {
                paths.push(CpuPath::Avx2);
            }
        }
        paths.push(CpuPath::Portable);
        paths
    }

    /// Whether vectors hold four or more 64-bit numbers, with shifts by different counts: only then are eight fields at once
    /// faster than one after the other.
    pub fn has_wide_vectors(self) -> bool {
        self != CpuPath::Portable
    }

    /// Name, as `HEADRACE_CPU` spells it.
    pub fn name(self) -> &'static str {
        match self {
            CpuPath::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            CpuPath::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            CpuPath::Avx512 => "avx512",
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

/// Compiles a plain function once per instruction set, so that the compiler may use those instructions in its loops, and
/// calls the copy of a [`CpuPath`]. What is inlined into the function is compiled with it.
#[macro_export]
macro_rules! per_cpu_path {
    ($(#[$attribute:meta])* $visibility:vis fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block) => {
        $(#[$attribute])*
        $visibility fn $name(path: $crate::CpuPath, $($argument: $type),*) $(-> $result)? {
            #[inline(always)]
            fn portable($($argument: $type),*) $(-> $result)? $body
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,lzcnt,popcnt,bmi1,bmi2")]
            fn avx2($($argument: $type),*) $(-> $result)? {
                portable($($argument),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi2,lzcnt,popcnt,bmi1,bmi2")]
            fn avx512($($argument: $type),*) $(-> $result)? {
                portable($($argument),*)
            }
            match path {
                $crate::CpuPath::Portable => portable($($argument),*),
                // SAFETY: `CpuPath::available` gives a path only when the processor has its instructions.
                #[cfg(target_arch = "x86_64")]
                $crate::CpuPath::Avx2 => unsafe { avx2($($argument),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                $crate::CpuPath::Avx512 => unsafe { avx512($($argument),*) },
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_the_processor_lacks_is_refused() {
        assert_eq!(choose(Some("portable")), Ok(CpuPath::Portable));
        assert_eq!(choose(Some("")), choose(None));
        let refused = choose(Some("neon9")).unwrap_err();
        assert!(refused.starts_with("HEADRACE_CPU is `neon9`; this processor has ") && refused.ends_with("portable"));
    }
}
