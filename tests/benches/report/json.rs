//! The result for programs.

use serde_json::{Value, json};

use crate::comparison::{Better, Measured};

/// An array with an object for each row.
pub(super) fn of(rows: &[Measured]) -> String {
    let rows: Vec<Value> = rows.iter().map(object).collect();
    format!("{:#}\n", Value::Array(rows))
}

fn object(measured: &Measured) -> Value {
    let Measured { row, summary, .. } = measured;
    json!({
        "path": row.path,
        "what": row.what,
        "peer": row.peer,
        "unit": row.unit,
        "better": match row.better {
            Better::Lower => "lower",
            Better::Higher => "higher",
        },
        "ratio": rounded(summary.middle),
        "low": rounded(summary.low),
        "high": rounded(summary.high),
        "reach": row.has_reach().then_some(row.reach),
        "aim": row.aim,
        "holds": row.has_reach().then(|| measured.holds()),
        "ours": rounded(measured.ours),
        "theirs": rounded(measured.theirs),
        "rounds": measured.rounds,
        "disturbed": measured.disturbed,
    })
}

/// To four places: more is noise.
fn rounded(figure: f64) -> f64 {
    (figure * 1e4).round() / 1e4
}
