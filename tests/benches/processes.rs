//! Processes as `/proc` shows them: CPU time, memory, load by others.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The unit of CPU times in `/proc`, fixed by Linux's interface to programs.
const TICK: Duration = Duration::from_millis(10);

/// A process's `/proc/<pid>/stat`.
struct Stat {
    parent: u32,
    /// Its own CPU time, and that of children that ended and were waited for.
    ticks: u32,
}

impl Stat {
    fn read(folder: &Path) -> Option<Self> {
        let text = fs::read_to_string(folder.join("stat")).ok()?;
        // The name may hold anything, brackets too; what follows the last one is numbers.
        let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
        let number = |index: usize| fields.get(index)?.parse::<u32>().ok();
        let ticks = [11, 12, 13, 14].into_iter().filter_map(number).sum();
        Some(Self { parent: number(1)?, ticks })
    }
}

fn all() -> HashMap<u32, Stat> {
    let folders = fs::read_dir("/proc").unwrap().map_while(Result::ok);
    let known = folders.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        Some((pid, Stat::read(&entry.path())?))
    });
    known.collect()
}

fn descends(stats: &HashMap<u32, Stat>, pid: u32, root: u32) -> bool {
    let mut at = Some(pid);
    while let Some(pid) = at {
        if pid == root {
            return true;
        }
        at = stats.get(&pid).map(|stat| stat.parent);
    }
    false
}

/// CPU time of a process and everything below it, what has ended included.
pub(crate) fn cpu_of(root: u32) -> Duration {
    let stats = all();
    let below = stats.iter().filter(|(pid, _)| descends(&stats, **pid, root));
    TICK * below.map(|(_, stat)| stat.ticks).sum()
}

/// Memory of a process and everything below it, in bytes; what several share counts once.
pub(crate) fn memory_of(root: u32) -> u64 {
    let stats = all();
    let below = stats.keys().filter(|pid| descends(&stats, **pid, root));
    let share = |pid: &u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap_or("0");
        line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0)
    };
    below.map(share).sum::<u64>() * 1024
}

/// The process below this one whose arguments hold `mark`.
pub(crate) fn child_with(mark: &str) -> Option<u32> {
    let (stats, own) = (all(), std::process::id());
    let marked = |pid: &u32| {
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        arguments.split(|byte| *byte == 0).any(|argument| argument == mark.as_bytes())
    };
    let of_ours = |pid: &u32| stats.get(pid).is_some_and(|stat| stat.parent == own);
    stats.keys().copied().find(|pid| of_ours(pid) && marked(pid))
}

/// Keeps every thread of a running process on one core.
pub(crate) fn pin(process: u32, core: usize) {
    let (core, process) = (core.to_string(), process.to_string());
    let done = Command::new("taskset").args(["--all-tasks", "-pc", &core, &process]).output();
    assert!(done.unwrap().status.success(), "a process cannot be pinned to core {core}");
}

/// Keeps the calling thread on one core.
pub(crate) fn pin_this_thread(core: usize) {
    let thread = fs::read_link("/proc/thread-self").unwrap();
    let thread = thread.file_name().expect("a thread has a number");
    let done = Command::new("taskset").args(["-pc", &core.to_string()]).arg(thread).output();
    assert!(done.unwrap().status.success(), "a thread cannot be pinned to core {core}");
}

/// The machine's CPU time so far, of all cores together, and our own part of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    busy: u64,
    stolen: u64,
    total: u64,
    ours: Duration,
}

impl Load {
    /// As of now.
    pub(crate) fn now() -> Self {
        let text = fs::read_to_string("/proc/stat").unwrap();
        let line = text.lines().next().unwrap_or_default();
        let ticks: Vec<u64> =
            line.split_whitespace().skip(1).filter_map(|number| number.parse().ok()).collect();
        let [user, nice, system, idle, wait, hard, soft, stolen, ..] = ticks[..] else {
            panic!("/proc/stat has another form: {line}");
        };
        let busy = user + nice + system + hard + soft;
        let total = busy + idle + wait + stolen;
        Self { busy, stolen, total, ours: cpu_of(std::process::id()) }
    }

    /// CPU time of others since then, the hypervisor included, in thousandths of the machine.
    pub(crate) fn foreign_since(self) -> Foreign {
        let now = Self::now();
        let total = (now.total - self.total).max(1);
        let ours = now.ours.saturating_sub(self.ours).as_millis() / TICK.as_millis();
        let busy = (now.busy - self.busy).saturating_sub(u64::try_from(ours).unwrap_or(u64::MAX));
        Foreign { busy: 1_000 * busy / total, stolen: 1_000 * (now.stolen - self.stolen) / total }
    }
}

/// CPU time of others, in thousandths of the machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Foreign {
    /// Processes that are not ours.
    pub(crate) busy: u64,
    /// The hypervisor.
    pub(crate) stolen: u64,
}

/// Most that others may take in a round that counts.
const BUSY_MAX: u64 = 150;
/// Most that the hypervisor may take.
const STOLEN_MAX: u64 = 20;

impl Foreign {
    /// True when others disturbed what was measured meanwhile.
    pub(crate) fn disturbs(self) -> bool {
        self.busy > BUSY_MAX || self.stolen > STOLEN_MAX
    }
}
