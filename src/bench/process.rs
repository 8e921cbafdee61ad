//! What a process costs, as the kernel counts it.

use std::{fs, io, time::Duration};

/// The kernel counts processor time for `/proc` in hundredths of a second on every platform that we measure on.
const TICK: Duration = Duration::from_millis(10);

/// Resident memory of a process in bytes.
pub fn resident(pid: u32) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or_else(|| odd("status"))?;
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().map_err(|_| odd("status"))?;
    Ok(kilobytes * 1024)
}

/// Processor time that a process has used, threads included.
pub fn processor_time(pid: u32) -> io::Result<Duration> {
    Ok(Times::of(pid)?.own)
}

/// Processor time of a process, its children, and those children that have ended.
pub fn processor_time_of_family(parent: u32) -> io::Result<Duration> {
    let head = Times::of(parent)?;
    let mut sum = head.own + head.ended_children;
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // A process that ended meanwhile is counted by its parent.
        if let Ok(times) = Times::of(pid)
            && times.parent == parent
        {
            sum += times.own;
        }
    }
    Ok(sum)
}

/// The parent of a process of this name; nothing where there is no such process on this machine.
pub(super) fn parent_of(pid: u32, name: &str) -> Option<u32> {
    let called = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    if called.trim() != name {
        return None;
    }
    Some(Times::of(pid).ok()?.parent)
}

/// Whether a process has this name.
pub(super) fn is_called(pid: u32, names: &[&str]) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|called| names.contains(&called.trim()))
}

struct Times {
    parent: u32,
    own: Duration,
    ended_children: Duration,
}

impl Times {
    fn of(pid: u32) -> io::Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // The name, in parentheses, may hold anything; the numbers come after the last one.
        let (_, rest) = stat.rsplit_once(')').ok_or_else(|| odd("stat"))?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let field = |number: usize| {
            fields.get(number - 3).and_then(|field| field.parse::<u32>().ok()).ok_or_else(|| odd("stat"))
        };
        let ticks = |number: usize| -> io::Result<Duration> { Ok(TICK * field(number)?) };
        Ok(Self { parent: field(4)?, own: ticks(14)? + ticks(15)?, ended_children: ticks(16)? + ticks(17)? })
    }
}

fn odd(file: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("/proc/…/{file} is not as expected"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_works_uses_processor_time_and_memory() {
        let me = std::process::id();
        assert!(resident(me).expect("this process") > 1 << 20);
        let (before, family) =
            (processor_time(me).expect("this process"), processor_time_of_family(me).expect("this process"));
        let mut sum = 0_u64;
        while processor_time(me).expect("this process") < before + 3 * TICK {
            sum = (0..1_000_000).fold(sum, |sum, n| std::hint::black_box(sum ^ n));
        }
        assert!(processor_time_of_family(me).expect("this process") >= family + 2 * TICK);
    }

    #[test]
    fn a_process_that_is_called_otherwise_is_not_taken_for_the_database() {
        let me = std::process::id();
        assert_eq!(parent_of(me, "postgres"), None);
        assert!(!is_called(me, &["mariadbd"]));
    }
}
