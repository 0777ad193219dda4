//! What is compared, path by path. Each file has its rows, and how they are measured.

mod callbacks;
mod catalogue;
mod confirms;
mod connections;
mod growth;
mod orders;
mod passwords;
mod quotes;

use crate::arguments::Arguments;
use crate::comparison::{Comparison, Measured, Row};
use crate::ground::{Database, Ground, LARGE, SMALL};
use crate::instructions;
use crate::report;
use crate::side::{Cores, Side};

/// A read of the catalogue as partners' pages make it.
pub(crate) const CATALOGUE: &str = "/api/v2/buy/payment-methods?countryCode=nl";

/// Measures the rows that are asked for.
pub(crate) fn run(arguments: &Arguments) -> Vec<Measured> {
    let mut run = Run { arguments, rows: Vec::new() };
    let on_one_core = [&catalogue::ROWS[..], &quotes::ROWS, &connections::ROWS];
    let on_all_cores = [&orders::ROWS[..], &confirms::ROWS, &passwords::ROWS, &callbacks::ROWS];
    let wanted = |rows: &[&[Row]]| rows.iter().any(|rows| run_wants(arguments, rows));
    let any = wanted(&on_one_core) || wanted(&on_all_cores) || wanted(&[&growth::ROWS]);
    if !any {
        return run.rows;
    }
    let ground = Ground::prepare();
    let small = Database::open(&ground, SMALL);
    if wanted(&on_one_core) {
        let side = Side::start(&ground, &small, Cores::First);
        catalogue::compare(&mut run, &side);
        quotes::compare(&mut run, &side);
        connections::compare(&mut run, &side);
    }
    if wanted(&on_all_cores) {
        let side = Side::start(&ground, &small, Cores::Any);
        orders::compare(&mut run, &side);
        confirms::compare(&mut run, &side);
        passwords::compare(&mut run, &side);
        callbacks::compare(&mut run, &side);
    }
    if wanted(&[&growth::ROWS]) {
        let large = Database::open(&ground, LARGE);
        growth::compare(&mut run, &ground, (&small, &large));
    }
    if arguments.instructions {
        instructions::count(&ground, &small);
    }
    run.rows
}

fn run_wants(arguments: &Arguments, rows: &[Row]) -> bool {
    rows.iter().any(|row| arguments.wants(row))
}

/// Rows so far.
pub(crate) struct Run<'a> {
    arguments: &'a Arguments,
    rows: Vec<Measured>,
}

impl Run<'_> {
    /// Whether one of the rows is asked for.
    fn wants(&self, rows: &[Row]) -> bool {
        run_wants(self.arguments, rows)
    }

    /// Measures a row if it is asked for, and shows it.
    fn compare(&mut self, comparison: Comparison<'_>) {
        if !self.arguments.wants(&comparison.row) {
            return;
        }
        let measured = comparison.run(self.arguments);
        report::show(&measured, self.rows.is_empty());
        self.rows.push(measured);
    }
}
