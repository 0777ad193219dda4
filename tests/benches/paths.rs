//! The paths that are compared. Each file has its rows and their measurement.

pub(crate) mod against;
mod callbacks;
mod catalogue;
mod confirms;
mod connections;
mod edges;
mod growth;
mod hostile;
mod orders;
mod own_policies;
mod passwords;
mod quotes;
mod reader;
mod shared_rates;
mod statement;

use std::time::Duration;

use rampart_core::platform::clock::Clock;

use crate::arguments::Arguments;
use crate::comparison::{Comparison, Measured, Row};
use crate::environment::{Database, Environment, LARGE, OTHER, RULED, SMALL};
use crate::instructions;
use crate::report;
use crate::side::{Cores, Side};

/// A read of the catalogue as partners' pages make it.
pub(crate) const CATALOGUE: &str = "/api/v2/buy/payment-methods?countryCode=nl";

/// A read of the prices.
pub(crate) const PRICES: &str = "/api/v1/prices";

/// A quote, the same again and again: each answer is a new one.
pub(crate) const QUOTE: &str =
    r#"{"currencyPair":"BTC-EUR","paymentMethod":"creditCard","fiatAmount":250}"#;

/// Time for all rows of a whole run, so that with what is prepared before the last ones it takes no
/// more than 20 minutes, however busy or slow the machine.
const ROWS_TIME: Duration = Duration::from_secs(17 * 60);

/// Measures the rows that are asked for.
pub(crate) fn run(arguments: &Arguments, clock: &Clock) -> Vec<Measured> {
    let mut run =
        Run { arguments, clock, began_ns: clock.monotonic_ns(), wanted: 0, rows: Vec::new() };
    let on_one_core =
        [&catalogue::ROWS[..], &quotes::ROWS, &connections::ROWS, &shared_rates::ROWS].concat();
    let on_all_cores =
        [&orders::ROWS[..], &confirms::ROWS, &passwords::ROWS, &hostile::ROWS, &callbacks::ROWS]
            .concat();
    let (ruled, large, edges) = (own_policies::ROWS, growth::ROWS, edges::ROWS);
    let against = if arguments.against.is_some() { &against::ROWS[..] } else { &[] };
    let all = [&on_one_core[..], &on_all_cores, &ruled, &edges, against, &large].concat();
    run.wanted = all.iter().filter(|row| arguments.wants(row)).count();
    if run.wanted == 0 {
        return run.rows;
    }
    let environment = Environment::prepare();
    let small = Database::open(&environment, SMALL);
    if run.wants(&on_one_core) {
        let side = Side::start(&environment, &small, Cores::First);
        catalogue::compare(&mut run, &side);
        quotes::compare(&mut run, &side);
        connections::compare(&mut run, &side);
        shared_rates::compare(&mut run, &side);
    }
    if run.wants(&ruled) {
        let ruled = Database::open(&environment, RULED);
        own_policies::compare(&mut run, &environment, &small, &ruled);
    }
    if run.wants(&on_all_cores) {
        let side = Side::start(&environment, &small, Cores::Any);
        orders::compare(&mut run, &side);
        confirms::compare(&mut run, &side);
        passwords::compare(&mut run, &side);
        hostile::compare(&mut run, &side);
        callbacks::compare(&mut run, &side);
    }
    edges::compare(&mut run, &environment, &small);
    if let Some(binary) = arguments.against.as_deref().filter(|_| run.wants(against)) {
        let other = Database::open_for(&environment, OTHER, Some(binary));
        against::compare(&mut run, &environment, &small, &other);
    }
    if run.wants(&large) {
        let large = Database::open(&environment, LARGE);
        growth::compare(&mut run, &environment, &small, &large);
    }
    if arguments.instructions {
        instructions::count(&environment, &small);
    }
    run.rows
}

/// Rows so far.
pub(crate) struct Run<'a> {
    arguments: &'a Arguments,
    clock: &'a Clock,
    began_ns: u64,
    /// Rows in all.
    wanted: usize,
    rows: Vec<Measured>,
}

impl Run<'_> {
    /// True when one of the rows is to be measured.
    fn wants(&self, rows: &[Row]) -> bool {
        rows.iter().any(|row| self.arguments.wants(row))
    }

    /// True when the rows so far, and this one, have had their part of [`ROWS_TIME`].
    fn is_late(&self) -> bool {
        let begun = u32::try_from(self.rows.len() + 1).expect("some rows");
        let wanted = u32::try_from(self.wanted).expect("some rows");
        let passed = Duration::from_nanos(self.clock.monotonic_ns() - self.began_ns);
        self.arguments.is_whole() && passed > ROWS_TIME * begun / wanted
    }

    /// Measures a row if it is asked for, and shows it.
    fn compare(&mut self, comparison: Comparison<'_>) {
        if !self.arguments.wants(&comparison.row) {
            return;
        }
        let measured = comparison.run(self.arguments, || self.is_late());
        report::show(&measured, self.rows.is_empty());
        self.rows.push(measured);
    }
}
