//! `rampart doctor`: whether an edge could run here, and what to mend if not.

use std::fmt::Display;

use clap::Args;
use rampart_core::Core;
use rampart_core::operate::readiness::Status;
use rampart_core::platform::clock::Clock;

use super::Target;
use crate::config::Config;
use crate::operator::Operator;
use crate::output;
use crate::server;
use crate::server::Certificates;
use crate::startup_error::StartupError;

/// Checks configuration, certificates, database, keys, prices, policies and the running edge.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    target: Target,
}

/// Number of problems found that stop an edge.
#[derive(Default)]
struct Findings {
    broken: usize,
}

impl Findings {
    fn good(&self, what: &str, detail: impl Display) {
        output::line(format_args!("ok      {what}: {detail}"));
    }

    fn odd(&self, what: &str, detail: impl Display) {
        output::line(format_args!("warning {what}: {detail}"));
    }

    fn bad(&mut self, what: &str, detail: impl Display) {
        self.broken += 1;
        output::line(format_args!("broken  {what}: {detail}"));
    }
}

impl Doctor {
    /// Looks at everything and prints a line for each.
    ///
    /// # Errors
    /// When something stops an edge from serving.
    pub(crate) fn run(self) -> Result<(), StartupError> {
        let config = self.target.load()?;
        let mut findings = Findings::default();
        findings.good("configuration", "every key is known");
        look_at_settings(&config, &mut findings);
        let runtime = server::runtime(2)?;
        runtime.block_on(look_at_core(&config, &mut findings));
        runtime.block_on(look_at_edge(&config, &findings));
        match findings.broken {
            0 => Ok(()),
            n => Err(StartupError::from(format!(
                "{n} of the checks above stop an edge from serving"
            ))),
        }
    }
}

fn look_at_settings(config: &Config, findings: &mut Findings) {
    let pairs = config.edge.certificates();
    if pairs.is_empty() {
        findings.bad("certificate", "set edge.tls.cert and edge.tls.key");
    } else {
        match Certificates::load(pairs) {
            Ok(_) => findings.good("certificate", "chain and key fit"),
            Err(error) => findings.bad("certificate", error),
        }
    }
    match config.core.keys.is_configured() {
        true => findings.good("keys.master", "set"),
        false => findings.odd("keys.master", "not set: the key stands in the database it protects"),
    }
    match &config.admin.token {
        Some(_) => findings.good("admin.token", "set"),
        None => findings.odd("admin.token", "not set: only operators' own tokens are accepted"),
    }
    if config.edge.public_url.is_none() {
        findings.odd("edge.public_url", "not set: links name the listening address");
    }
}

async fn look_at_core(config: &Config, findings: &mut Findings) {
    let (core, schema) = match Core::inspect(config.core.clone(), Clock::system()).await {
        Ok(inspected) => inspected,
        Err(error) => return findings.bad("database", error),
    };
    let optional = schema.missing_optional();
    match schema.refusal() {
        Some(_) if config.core.database.migrate_on_start && schema.is_behind() => findings
            .odd("schema", format!("at {}; `rampart serve` will migrate it", schema.version())),
        Some(reason) => findings.bad("schema", reason),
        None if optional.is_empty() => findings.good("schema", format!("at {}", schema.version())),
        None => findings.odd("schema", format!("{optional} missing: run `rampart migrate`")),
    }
    let Some(core) = core else { return };
    let missing = core.missing_for_live(None);
    if missing.is_empty() {
        findings.good("going live", "nothing is missing");
    } else {
        findings.odd("going live", format!("missing: {}", missing.join(", ")));
    }
    match core.tenant_key_counts().await {
        Ok(keys) if keys.missing == 0 => {
            findings.good("keys.per_tenant", format!("{} partners have keys", keys.total));
        }
        Ok(keys) if core.has_tenant_keys() => findings.odd(
            "keys.per_tenant",
            format!("{} partners get keys of their own once an edge runs", keys.missing),
        ),
        Ok(keys) => findings.odd(
            "keys.per_tenant",
            format!(
                "off: the master key seals the values of {} partners; switch it on when every edge \
                 runs this version",
                keys.missing
            ),
        ),
        Err(error) => findings.bad("keys.per_tenant", error),
    }
    core.shared_rates.check().await;
    core.documents.check().await;
    for check in core.readiness().await.checks {
        match check.status {
            Status::Ok => findings.good(check.name, "as it should be"),
            Status::Degraded => findings.odd(check.name, check.detail),
            Status::Failed => findings.bad(check.name, check.detail),
        }
    }
}

async fn look_at_edge(config: &Config, findings: &Findings) {
    let Ok(operator) = Operator::of(config) else { return };
    match operator.get("partners").await {
        Ok(partners) => {
            let count = partners.as_array().map_or(0, Vec::len);
            findings.good("running edge", format!("answers, {count} partners"));
        }
        Err(error) => findings.odd("running edge", error),
    }
}
