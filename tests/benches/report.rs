//! The output of rows: a line each as they are measured, and two files for later.

mod json;
mod svg;

use std::fs;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::time::Duration;

use crate::comparison::{Better, Combine, Measured, Row};

/// Prints a row, under the headings if it is the first one.
pub(crate) fn show(measured: &Measured, first: bool) {
    let mut err = std::io::stderr();
    if err.is_terminal() {
        let _ = write!(err, "\r\x1b[K");
    }
    if first {
        println!(
            "{:<3} {:<36} {:<44} {:<37} {:>7} {:>17} {:>7} {:>6}  holds",
            "", "what", "against", "unit", "ratio", "interval", "reach", "aim"
        );
    }
    let Measured { row, summary, .. } = measured;
    let Row { path, what, peer, unit, .. } = row;
    let interval = format!("{} to {}", short(summary.low), short(summary.high));
    println!(
        "{path:<3} {what:<36} {peer:<44} {unit:<37} {:>7} {interval:>17} {:>7} {:>6}  {}{}",
        short(summary.middle),
        bound(row, row.reach),
        bound(row, row.aim),
        verdict(measured),
        remark(measured),
    );
}

/// Two places behind the point, three where the first one is nothing.
fn short(figure: f64) -> String {
    if figure.abs() < 0.1 { format!("{figure:.3}") } else { format!("{figure:.2}") }
}

/// `≤ 1.4`
fn bound(row: &Row, figure: f64) -> String {
    if !figure.is_finite() || figure == 0.0 {
        return "none".to_owned();
    }
    match row.better {
        Better::Lower => format!("≤ {figure}"),
        Better::Higher => format!("≥ {figure}"),
    }
}

fn verdict(measured: &Measured) -> &'static str {
    if !measured.row.has_reach() {
        return "-";
    }
    match (measured.holds(), measured.middle_holds()) {
        (true, _) => "yes",
        (false, true) => "median only",
        (false, false) => "NO",
    }
}

fn remark(measured: &Measured) -> String {
    let both = match measured.row.combine {
        Combine::Difference => {
            format!(" ({} with, {} without)", short(measured.ours), short(measured.theirs))
        }
        Combine::Ratio => String::new(),
    };
    let rounds = match (measured.disturbed, measured.discarded) {
        (true, _) => " (others were busy)".to_owned(),
        (false, 0) => String::new(),
        (false, discarded) => format!(" ({discarded} rounds discarded)"),
    };
    both + &rounds
}

/// Writes `result.json` and `result.svg`, and says where.
pub(crate) fn write(rows: &[Measured], took: Duration, folder: &Path) {
    let (json, svg) = (folder.join("result.json"), folder.join("result.svg"));
    fs::write(&json, json::of(rows)).unwrap();
    fs::write(&svg, svg::of(rows)).unwrap();
    let bound = rows.iter().filter(|measured| measured.row.has_reach());
    let held = bound.clone().filter(|row| row.holds()).count();
    let (minutes, seconds) = (took.as_secs() / 60, took.as_secs() % 60);
    println!(
        "\n{held} of {} reaches hold with all of their interval; {minutes} min {seconds} s.",
        bound.count()
    );
    println!("{}\n{}", json.display(), svg.display());
}

/// A figure in terms of its reach, so that all rows have one scale: 1 is the reach, above it is
/// better. Without a reach, 1 is the peer's figure. A difference that vanishes is better than any.
fn score(row: &Row, figure: f64) -> f64 {
    let reach = if row.has_reach() { row.reach } else { 1.0 };
    let floor = if row.combine == Combine::Difference { reach / 100.0 } else { 1e-9 };
    match row.better {
        Better::Lower => reach / figure.max(floor),
        Better::Higher => figure / reach,
    }
}
