//! `rampart overview` and `rampart dependents`.

use clap::Args;

use super::{Run, StartupError, Target, query};

/// Show open orders, what waits for operators, and what the edge finds wrong.
#[derive(Debug, Args)]
pub(crate) struct Overview {
    #[command(flatten)]
    target: Target,
}

impl Run for Overview {
    fn run(self) -> Result<(), StartupError> {
        self.target.call("GET overview", &())
    }
}

/// Count what depends on something, before it is taken away.
#[derive(Debug, Args)]
pub(crate) struct Dependents {
    /// `partner=…`, `user=…`, `pair=…`, `paymentMethod=…`, `operator=…`, or `partner=…` with
    /// `apiKey=…`, `webhook=…`, `policy=…` or `staff=…`; the routes without any.
    #[arg(value_name = "SUBJECT=NAME")]
    subject: Vec<String>,
    #[command(flatten)]
    target: Target,
}

impl Run for Dependents {
    fn run(self) -> Result<(), StartupError> {
        let mut criteria = Vec::new();
        for subject in &self.subject {
            let pair = subject.split_once('=');
            let (kind, name) = pair.ok_or_else(|| format!("'{subject}' is not SUBJECT=NAME"))?;
            criteria.push((kind, Some(name.to_owned())));
        }
        let path = format!("dependents{}", query(criteria));
        self.target.run(async |admin| admin.get(&path).await)
    }
}
