//! The result for people: every row on one scale, as a multiple of its reach.

use std::fmt::Write as _;

use super::score;
use crate::comparison::{Measured, Row};

/// Pixels: of a row, above the first one, of the names, of the scale, and beside it.
const ROW: f64 = 26.0;
const TOP: f64 = 58.0;
const NAMES: f64 = 430.0;
const SCALE: f64 = 460.0;
const MARGIN: f64 = 24.0;
/// The scale, logarithmic: from a tenth of the reach to ten times as good.
const DECADES: f64 = 2.0;

/// The plot.
pub(super) fn of(rows: &[Measured]) -> String {
    let width = NAMES + SCALE + 2.0 * MARGIN;
    let bottom = ROW.mul_add(f64::from(u32::try_from(rows.len()).unwrap()), TOP);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{:.0}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{MARGIN}\" y=\"24\" font-size=\"15\">Rampart beside its peers, as multiples of \
         each reach: right of 1 it holds, \u{25c7} is the aim</text>\n",
        bottom + MARGIN
    );
    for tick in [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0] {
        let (x, stroke) = (place(tick), if tick == 1.0 { "#222" } else { "#ddd" });
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom:.0}\" stroke=\"{stroke}\"/>\
             <text x=\"{x:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{tick}</text>",
            TOP - 6.0
        );
    }
    for (index, measured) in (0_u32..).zip(rows) {
        row(&mut svg, measured, ROW.mul_add(f64::from(index) + 0.5, TOP));
    }
    svg + "</svg>\n"
}

fn row(svg: &mut String, measured: &Measured, y: f64) {
    let Measured { row, summary, .. } = measured;
    let Row { path, what, peer, .. } = row;
    let color = match (measured.holds(), measured.middle_holds()) {
        _ if !row.has_reach() => "#57606a",
        (true, _) => "#1a7f37",
        (false, true) => "#bf8700",
        (false, false) => "#cf222e",
    };
    let [low, middle, high, aim] =
        [summary.low, summary.middle, summary.high, row.aim].map(|at| place(score(row, at)));
    let text_y = y + 4.0;
    let _ = writeln!(
        svg,
        "<text x=\"{MARGIN}\" y=\"{text_y:.1}\">{path} {what} / {}: {:.2}</text>\
         <line x1=\"{low:.1}\" x2=\"{high:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"{color}\" \
         stroke-width=\"3\"/>\
         <circle cx=\"{middle:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"{color}\"/>\
         <text x=\"{aim:.1}\" y=\"{text_y:.1}\" text-anchor=\"middle\" fill=\"#57606a\">\u{25c7}\
         </text>",
        short(peer),
        summary.middle,
    );
}

/// Text before the first comma.
fn short(peer: &str) -> &str {
    peer.split(',').next().unwrap_or(peer)
}

/// Position of a score on the scale, clamped to its ends.
fn place(score: f64) -> f64 {
    let along = (score.max(1e-3).log10() + DECADES / 2.0) / DECADES;
    SCALE.mul_add(along.clamp(0.0, 1.0), NAMES + MARGIN)
}
