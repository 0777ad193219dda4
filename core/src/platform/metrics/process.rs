//! The metrics of the process itself, by the names that Prometheus's client libraries give them.

use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

/// Milliseconds of a tick in `/proc`: Linux shows every process 100 a second.
const TICK_MS: u64 = 10;

/// Appends them in the Prometheus text format; those that the system does not tell are left out.
pub(super) fn render(text: &mut String) {
    let mut gauge = |name: &str, help: &str, kind: &str, value: Option<String>| {
        let Some(value) = value else { return };
        let lines = [format!("# HELP {name} {help}"), format!("# TYPE {name} {kind}")];
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}\n{}\n{name} {value}", lines[0], lines[1]);
    };
    let stat = Stat::read();
    let cpu = stat.as_ref().and_then(Stat::cpu);
    let seconds = |time: Duration| format!("{}", time.as_secs_f64());
    let cpu = cpu.map(seconds);
    gauge("process_cpu_seconds_total", "User and system CPU time in seconds.", "counter", cpu);
    let started = stat.as_ref().and_then(Stat::started).map(seconds);
    gauge("process_start_time_seconds", "Start in seconds since the epoch.", "gauge", started);
    let threads = stat.as_ref().and_then(|stat| stat.field(THREADS)).map(|n| n.to_string());
    gauge("process_threads", "Threads.", "gauge", threads);
    let virtual_bytes = stat.as_ref().and_then(|stat| stat.field(VIRTUAL_BYTES));
    let virtual_bytes = virtual_bytes.map(|bytes| bytes.to_string());
    gauge("process_virtual_memory_bytes", "Virtual memory in bytes.", "gauge", virtual_bytes);
    let resident = resident_bytes().map(|bytes| bytes.to_string());
    gauge("process_resident_memory_bytes", "Resident memory in bytes.", "gauge", resident);
    let open = fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count().to_string());
    gauge("process_open_fds", "Open file descriptors.", "gauge", open);
    gauge("process_max_fds", "Most open file descriptors.", "gauge", descriptors_max());
}

/// Fields of `/proc/self/stat` behind the name of the program, counted from its state (proc(5)).
const USER_TICKS: usize = 11;
const SYSTEM_TICKS: usize = 12;
const THREADS: usize = 17;
const START_TICKS: usize = 19;
const VIRTUAL_BYTES: usize = 20;

/// `/proc/self/stat`.
struct Stat(Vec<String>);

impl Stat {
    fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/self/stat").ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        // The name stands in parentheses and may hold anything.
        let (_, fields) = text.rsplit_once(") ")?;
        Some(Self(fields.split_whitespace().map(str::to_owned).collect()))
    }

    fn field(&self, number: usize) -> Option<u64> {
        self.0.get(number)?.parse().ok()
    }

    fn cpu(&self) -> Option<Duration> {
        Some(time_of(self.field(USER_TICKS)?.saturating_add(self.field(SYSTEM_TICKS)?)))
    }

    /// The start since the epoch.
    fn started(&self) -> Option<Duration> {
        let system = fs::read_to_string("/proc/stat").ok()?;
        let boot = system.lines().find_map(|line| line.strip_prefix("btime "))?.trim();
        let after_boot = time_of(self.field(START_TICKS)?);
        Some(Duration::from_secs(boot.parse().ok()?) + after_boot)
    }
}

/// The time of so many ticks.
const fn time_of(ticks: u64) -> Duration {
    Duration::from_millis(ticks.saturating_mul(TICK_MS))
}

fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1_024)
}

fn descriptors_max() -> Option<String> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let soft = line.split_whitespace().next()?;
    soft.parse::<u64>().ok().map(|limit| limit.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_may_have_any_name() {
        let text = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 40 60 0 0 0 0 9 0 500 4096 7";
        let stat = Stat::parse(text).unwrap();
        assert_eq!(stat.cpu(), Some(Duration::from_secs(1)));
        assert_eq!((stat.field(THREADS), stat.field(START_TICKS)), (Some(9), Some(500)));
        assert_eq!(stat.field(VIRTUAL_BYTES), Some(4_096));
    }

    #[test]
    fn more_ticks_than_32_bits_hold_are_a_time() {
        let text = "7 (a) S 1 2 3 4 5 6 7 8 9 10 4294967296 4 0 0 0 0 9 0 4294967300 4096 7";
        let stat = Stat::parse(text).unwrap();
        assert_eq!(stat.cpu(), Some(Duration::from_secs(42_949_673)));
        assert!(stat.started().is_some_and(|started| started > Duration::from_secs(42_949_673)));
    }

    #[test]
    fn this_process_is_shown() {
        let mut text = String::new();
        render(&mut text);
        let value = |name: &str| -> u64 {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
            line.unwrap_or_else(|| panic!("{name}: {text}")).parse().unwrap()
        };
        assert!(value("process_resident_memory_bytes") > 1_000_000);
        assert!(value("process_open_fds") >= 3 && value("process_max_fds") >= 3);
        assert!(value("process_threads") >= 1);
        assert!(text.contains("\nprocess_cpu_seconds_total ") && text.contains("_start_time_"));
    }
}
