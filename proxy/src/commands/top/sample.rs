//! The metrics of an edge at one moment, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::time::Duration;

/// Labels of a series.
type Labels = BTreeMap<String, String>;

/// All series.
#[derive(Debug)]
pub(super) struct Sample {
    /// Monotonic time, in nanoseconds.
    at_ns: u64,
    series: Vec<Series>,
}

#[derive(Debug)]
struct Series {
    name: String,
    labels: Labels,
    value: f64,
}

impl Sample {
    /// Reads the lines that are series; comments and what is no series are left out.
    pub(super) fn read(text: &str, at_ns: u64) -> Self {
        Self { at_ns, series: text.lines().filter_map(series).collect() }
    }

    /// True if a metric has a series.
    pub(super) fn has(&self, name: &str) -> bool {
        self.of(name).next().is_some()
    }

    /// Time since an earlier one.
    pub(super) fn since(&self, earlier: &Self) -> Duration {
        Duration::from_nanos(self.at_ns.saturating_sub(earlier.at_ns))
    }

    /// The sum of a metric's series that have these labels.
    pub(super) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        sum(self.of(name).filter(|one| one.has(labels)).map(|one| one.value))
    }

    /// The sums of a metric's series by one of their labels.
    pub(super) fn by(&self, name: &str, label: &str) -> BTreeMap<&str, f64> {
        let mut sums = BTreeMap::new();
        for one in self.of(name) {
            if let Some(value) = one.labels.get(label) {
                *sums.entry(value.as_str()).or_default() += one.value;
            }
        }
        sums
    }

    /// The value of a histogram, in its unit, below which this share of what came since `earlier`
    /// lies: the upper bound of its bucket. `None` if nothing came.
    pub(super) fn quantile(&self, earlier: &Self, name: &str, share: f64) -> Option<f64> {
        let name = format!("{name}_bucket");
        let (now, before) = (self.buckets(&name), earlier.buckets(&name));
        let came = now.iter().map(|(bound, count)| {
            let before = before.iter().find(|(known, _)| known == bound);
            (*bound, count - before.map_or(0.0, |(_, count)| *count))
        });
        let came: Vec<_> = came.collect();
        let all = came.last().map(|(_, count)| *count).filter(|count| *count > 0.0)?;
        came.into_iter().find(|(_, count)| *count >= share * all).map(|(bound, _)| bound)
    }

    /// Bounds of a histogram's buckets with the counts below them, in their order.
    fn buckets(&self, name: &str) -> Vec<(f64, f64)> {
        let bounds = self.by(name, "le").into_iter();
        let mut buckets: Vec<(f64, f64)> =
            bounds.filter_map(|(bound, count)| Some((bound.parse().ok()?, count))).collect();
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        buckets
    }

    fn of<'s>(&'s self, name: &str) -> impl Iterator<Item = &'s Series> {
        self.series.iter().filter(move |one| one.name == name)
    }
}

/// The sum of values; zero of none, of which the library's own is a negative zero, printed as one.
pub(super) fn sum(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |sum, value| sum + value)
}

impl Series {
    fn has(&self, labels: &[(&str, &str)]) -> bool {
        labels.iter().all(|(name, value)| self.labels.get(*name).is_some_and(|own| own == value))
    }
}

/// A line as a series.
fn series(line: &str) -> Option<Series> {
    if line.starts_with('#') {
        return None;
    }
    let (head, value) = line.rsplit_once(' ')?;
    let (name, labels) = match head.split_once('{') {
        Some((name, labels)) => (name, read_labels(labels.strip_suffix('}')?)?),
        None => (head, Labels::new()),
    };
    Some(Series { name: name.to_owned(), labels, value: value.parse().ok()? })
}

/// `name="value",…`, with `\\`, `\"` and `\n` in values.
fn read_labels(text: &str) -> Option<Labels> {
    let (mut labels, mut rest) = (Labels::new(), text);
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"")?;
        let (mut value, mut letters) = (String::new(), after.char_indices());
        let end = loop {
            match letters.next()? {
                (end, '"') => break end,
                (_, '\\') => match letters.next()?.1 {
                    'n' => value.push('\n'),
                    letter => value.push(letter),
                },
                (_, letter) => value.push(letter),
            }
        };
        labels.insert(name.trim_start_matches(',').to_owned(), value);
        rest = after.get(end + 1..)?;
    }
    Some(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_summed_by_their_labels() {
        let text = "# HELP a Something.\n# TYPE a counter\na{x=\"1\",y=\"q\\\"}\"} 2\n\
                    a{x=\"2\",y=\"q\"} 3\nb 4.5\nnothing\n";
        let sample = Sample::read(text, 0);
        assert_eq!(
            (sample.sum("a", &[]), sample.sum("a", &[("x", "2")]), sample.sum("b", &[])),
            (5.0, 3.0, 4.5)
        );
        assert_eq!(sample.by("a", "y"), BTreeMap::from([("q", 3.0), ("q\"}", 2.0)]));
        assert!(sample.sum("c", &[]).abs() < f64::EPSILON);
    }

    #[test]
    fn a_quantile_is_of_what_came_between() {
        let buckets = |counts: [u32; 3]| {
            let [a, b, c] = counts;
            Sample::read(
                &format!(
                    "t_bucket{{le=\"0.1\"}} {a}\nt_bucket{{le=\"1\"}} {b}\nt_bucket{{le=\"+Inf\"}} {c}\n"
                ),
                0,
            )
        };
        let (before, now) = (buckets([100, 100, 100]), buckets([150, 199, 200]));
        assert_eq!(now.quantile(&before, "t", 0.5), Some(0.1));
        assert_eq!(now.quantile(&before, "t", 0.99), Some(1.0));
        assert_eq!(now.quantile(&before, "t", 1.0), Some(f64::INFINITY));
        assert_eq!(now.quantile(&now, "t", 0.5), None);
    }
}
