//! Streams that keep to some CPUs.

use headrace_types::{CoreError, ErrorKind};
use rustix::thread::{CpuSet, sched_setaffinity};

/// Lets the calling thread, that of the stream with this number (from 1), use only the CPUs that are listed for it; any if
/// none are. Threads that it starts keep to them, too: those that decode and send.
///
/// # Errors
/// `Specification` when the system has not these CPUs, or does not give them to this process.
pub fn pin(cpus_of_streams: &[Vec<usize>], number: usize) -> Result<(), CoreError> {
    let Some(cpus) = number.checked_sub(1).and_then(|index| cpus_of_streams.get(index)) else { return Ok(()) };
    let mut set = CpuSet::new();
    for &cpu in cpus.iter().filter(|&&cpu| cpu < CpuSet::MAX_CPU) {
        set.set(cpu);
    }
    sched_setaffinity(None, &set).map_err(|error| {
        CoreError::new(ErrorKind::Specification, format!("stream {number} cannot keep to its CPUs"))
            .found(error.to_string())
            .expected(format!("CPUs {cpus:?} for this process"))
            .hint("Leave `affinity` out of the package.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_to_its_cpus() {
        let before = rustix::thread::sched_getaffinity(None).unwrap();
        let last = (0..CpuSet::MAX_CPU).rev().find(|&cpu| before.is_set(cpu)).unwrap();
        std::thread::spawn(move || {
            pin(&[vec![last]], 2).unwrap();
            assert_eq!(rustix::thread::sched_getaffinity(None).unwrap(), before, "nothing is listed for it");
            pin(&[vec![last]], 1).unwrap();
            let now = rustix::thread::sched_getaffinity(None).unwrap();
            assert!(now.is_set(last) && now.count() == 1);
            assert!(pin(&[vec![]], 1).is_err(), "no CPU at all");
        })
        .join()
        .unwrap();
    }
}
