//! A campaign: families of attacks or faults, one after another, each with a row of a table and
//! with what it found wrong. It is the `main` of a test target.
//!
//! The short form is part of `make test`; `--full` and `--long` (ten times as much) are for
//! machines that have nothing else to do. Words that are no options choose families by name.

use std::fmt::Write as _;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use rampart_core::platform::clock::Clock;
use tokio::runtime::Runtime;

/// Longest run of one family in its short form.
const FAMILY_MAX: Duration = Duration::from_secs(180);
/// The same in full.
const FAMILY_FULL_MAX: Duration = Duration::from_secs(3 * 3_600);
/// Stack of the thread of those that wait, as large as that of the main thread usually is.
const STACK_BYTES: usize = 8 << 20;

/// The size of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Some of everything, on a machine shared with other tests.
    Short,
    /// As much as the figures are for.
    Full,
    /// Ten times as much.
    Long,
}

impl Scale {
    /// A number that depends on the size: `full` is multiplied in the long form.
    pub fn of(self, short: usize, full: usize) -> usize {
        match self {
            Self::Short => short,
            Self::Full => full,
            Self::Long => 10 * full,
        }
    }

    /// `true` where figures are exact, because nothing else runs beside.
    pub fn is_exact(self) -> bool {
        self != Self::Short
    }
}

/// The result of a family.
#[derive(Debug, Default)]
pub struct Report {
    /// A cell of the table for each column.
    pub cells: Vec<String>,
    /// Each thing that must not be, a sentence each.
    pub wrong: Vec<String>,
}

impl Report {
    /// Notes what is wrong unless `holds`.
    pub fn require(&mut self, holds: bool, wrong: impl FnOnce() -> String) {
        if !holds {
            self.wrong.push(wrong());
        }
    }
}

/// A family: its name, and its run.
pub struct Family {
    /// Name in the table.
    pub name: &'static str,
    /// Most of its time it waits for timeouts: in the short form it runs beside the others.
    pub waits: bool,
    /// Runs it.
    pub run: fn(Scale) -> LocalBoxFuture<'static, Report>,
}

/// A column whose cells are added up. A run of all families in full reaches the sum at least.
pub struct Total {
    /// Head of the column.
    pub column: &'static str,
    /// The least sum.
    pub least: usize,
}

impl Total {
    /// The sum of the column's numbers.
    fn of(&self, heads: &[String], rows: &[Vec<String>]) -> usize {
        let place = heads.iter().position(|head| head == self.column);
        let cells = rows.iter().filter_map(|row| row.get(place?)?.parse::<usize>().ok());
        cells.sum()
    }
}

/// A family of an `async fn(Scale) -> Report`; `waits` before its name says that it mostly does.
#[macro_export]
macro_rules! family {
    ($name:literal, $run:path) => {
        $crate::campaign::Family { name: $name, waits: false, run: |scale| Box::pin($run(scale)) }
    };
    (waits $name:literal, $run:path) => {
        $crate::campaign::Family { name: $name, waits: true, run: |scale| Box::pin($run(scale)) }
    };
}

/// The words of the command line.
struct Arguments {
    scale: Scale,
    list: bool,
    chosen: Vec<String>,
}

impl Arguments {
    /// Options of cargo's own harness that mean nothing here are passed over.
    fn read(words: impl Iterator<Item = String>) -> Self {
        let mut read = Self { scale: Scale::Short, list: false, chosen: Vec::new() };
        for word in words {
            match word.as_str() {
                "--full" => read.scale = Scale::Full,
                "--long" => read.scale = Scale::Long,
                "--list" => read.list = true,
                option if option.starts_with('-') => {}
                name => read.chosen.push(name.to_owned()),
            }
        }
        read
    }

    /// True if every family runs in full.
    fn is_whole(&self) -> bool {
        self.chosen.is_empty() && self.scale.is_exact()
    }

    fn chooses(&self, name: &str) -> bool {
        self.chosen.is_empty() || self.chosen.iter().any(|chosen| name.contains(chosen.as_str()))
    }
}

/// Runs the families that the command line chooses, then prints the table. Fails when something
/// was wrong in one of them.
pub fn run(columns: &[&str], total: &Total, families: &[Family]) -> ExitCode {
    let arguments = Arguments::read(std::env::args().skip(1));
    if arguments.list {
        families.iter().for_each(|family| println!("{}: test", family.name));
        return ExitCode::SUCCESS;
    }
    // A panic of the harness would say which provider is missing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let chosen: Vec<_> = families.iter().filter(|family| arguments.chooses(family.name)).collect();
    let mut rows = Vec::new();
    let mut wrong = Vec::new();
    for (family, report) in chosen.iter().zip(reports(&runtime, arguments.scale, &chosen)) {
        let mut row = vec![family.name.to_owned()];
        row.extend(report.cells);
        row.resize(columns.len(), "-".to_owned());
        row.push(if report.wrong.is_empty() { "yes" } else { "NO" }.to_owned());
        rows.push(row);
        wrong.extend(report.wrong.into_iter().map(|wrong| format!("{}: {wrong}", family.name)));
    }
    // Before the runtime ends: what families left behind belongs to it.
    let mut heads: Vec<String> = columns.iter().map(|&column| column.to_owned()).collect();
    heads.push("holds".to_owned());
    println!("\n{}", table(&heads, &rows));
    let sum = total.of(&heads, &rows);
    println!("{sum} {} in all", total.column);
    if arguments.is_whole() && sum < total.least {
        wrong.push(format!("{sum} {}, at least {} are wanted", total.column, total.least));
    }
    for wrong in &wrong {
        println!("{wrong}");
    }
    runtime.shutdown_timeout(Duration::from_secs(5));
    if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The reports of these families, in their order. In the short form, which judges few times, those that
/// wait run beside the others.
fn reports(runtime: &Runtime, scale: Scale, families: &[&Family]) -> Vec<Report> {
    let run = |family: &Family| {
        let clock = Clock::system();
        let report = runtime.block_on(watched(family, scale));
        let seconds = clock.monotonic_ns() / 1_000_000_000;
        println!("{} took {seconds} s", family.name);
        report
    };
    if scale.is_exact() {
        return families.iter().map(|&family| run(family)).collect();
    }
    let run_those = |waits: bool| {
        let those = families.iter().enumerate().filter(|(_, family)| family.waits == waits);
        those.map(|(place, &family)| (place, run(family))).collect::<Vec<_>>()
    };
    let mut reports = thread::scope(|scope| {
        let waiting = thread::Builder::new().stack_size(STACK_BYTES);
        let waiting = waiting.spawn_scoped(scope, || run_those(true)).unwrap();
        let mut reports = run_those(false);
        reports.extend(waiting.join().unwrap());
        reports
    });
    reports.sort_by_key(|(place, _)| *place);
    reports.into_iter().map(|(_, report)| report).collect()
}

/// A family's report; a panic is one of what is wrong, and so is a run without end.
async fn watched(family: &Family, scale: Scale) -> Report {
    let most = if scale == Scale::Short { FAMILY_MAX } else { FAMILY_FULL_MAX };
    let running = AssertUnwindSafe((family.run)(scale)).catch_unwind();
    let wrong = match tokio::time::timeout(most, running).await {
        Ok(Ok(report)) => return report,
        Ok(Err(_)) => "it panicked, see above".to_owned(),
        Err(_) => format!("it did not end within {} s", most.as_secs()),
    };
    Report { cells: Vec::new(), wrong: vec![wrong] }
}

/// A table with columns of equal width.
pub fn table(heads: &[String], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).chain(heads.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let mut text = String::new();
    for row in std::iter::once(heads).chain(rows.iter().map(Vec::as_slice)) {
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(text, "{cell:width$}  ");
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use tokio::sync::Notify;

    use super::*;

    fn arguments(words: &[&str]) -> Arguments {
        Arguments::read(words.iter().map(|&word| word.to_owned()))
    }

    #[test]
    fn words_choose_families_and_options_the_size() {
        let all = arguments(&["--nocapture"]);
        assert!(all.chooses("smuggling") && all.scale == Scale::Short && !all.list);
        let some = arguments(&["smug", "--full"]);
        assert!(some.chooses("smuggling") && !some.chooses("flood") && some.scale.is_exact());
        assert_eq!(arguments(&["--long"]).scale.of(1, 5), 50);
    }

    #[test]
    fn a_table_has_columns() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let text = table(&row(["fault", "lost"]), &[row(["kill", "0"]), row(["a cut", "10"])]);
        assert_eq!(text, "fault  lost\nkill   0\na cut  10\n");
    }

    #[test]
    fn a_total_adds_up_the_numbers_of_its_column() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let rows = [row(["kill", "40"]), row(["disk", "needs root"]), row(["cut", "2"])];
        let total = Total { column: "confirms", least: 42 };
        assert_eq!(total.of(&row(["fault", "confirms"]), &rows), 42);
        assert!(arguments(&["--full"]).is_whole() && !arguments(&["--full", "kill"]).is_whole());
        assert!(!arguments(&[]).is_whole());
    }

    #[test]
    fn a_family_that_waits_runs_beside_the_others_and_is_reported_in_its_place() {
        static OTHER_RAN: Notify = Notify::const_new();
        async fn waiting(_: Scale) -> Report {
            OTHER_RAN.notified().await;
            Report { cells: vec!["waiting".to_owned()], wrong: Vec::new() }
        }
        async fn other(_: Scale) -> Report {
            OTHER_RAN.notify_one();
            Report::default()
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let families = [family!(waits "waiting", waiting), family!("other", other)];
        let reports = reports(&runtime, Scale::Short, &families.each_ref());
        assert_eq!(reports[0].cells, ["waiting"]);
        assert!(reports.len() == 2 && reports[1].cells.is_empty(), "{reports:?}");
        assert!(reports.iter().all(|report| report.wrong.is_empty()), "{reports:?}");
    }

    #[tokio::test]
    async fn a_family_that_panics_is_wrong_and_ends_nothing_else() {
        async fn broken(_: Scale) -> Report {
            assert!(Scale::Short.is_exact(), "on purpose");
            Report::default()
        }
        let report = watched(&family!("broken", broken), Scale::Short).await;
        assert_eq!(report.wrong.len(), 1);
    }
}
