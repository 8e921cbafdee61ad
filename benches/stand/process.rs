//! What a process costs, as the kernel counts it.

use std::{fs, time::Duration};

use super::Outcome;

/// The kernel counts processor time for `/proc` in hundredths of a second on every platform that we measure on.
const TICK: Duration = Duration::from_millis(10);

/// Resident memory of a process in bytes.
pub(crate) fn resident(pid: u32) -> Outcome<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes * 1024)
}

/// Processor time that a process has used, threads included.
pub(crate) fn processor_time(pid: u32) -> Outcome<Duration> {
    Ok(Times::of(pid)?.own)
}

/// Processor time of a process, its children, and those children that have ended.
pub(crate) fn processor_time_of_family(parent: u32) -> Outcome<Duration> {
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

struct Times {
    parent: u32,
    own: Duration,
    ended_children: Duration,
}

impl Times {
    fn of(pid: u32) -> Outcome<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // The name, in parentheses, may hold anything; the numbers come after the last one.
        let (_, rest) = stat.rsplit_once(')').ok_or("no name in /proc/…/stat")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3).ok_or("too few fields in /proc/…/stat");
        let ticks = |number: usize| -> Outcome<Duration> { Ok(TICK * field(number)?.parse::<u32>()?) };
        Ok(Self { parent: field(4)?.parse()?, own: ticks(14)? + ticks(15)?, ended_children: ticks(16)? + ticks(17)? })
    }
}
