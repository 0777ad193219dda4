//! `rampart doctor`: whether an edge could run here, and what to mend if not.

use std::fmt::Display;
use std::time::Duration;

use clap::Args;
use rampart_api::operate::going_live::missing_for_live;
use rampart_api::operate::idle_routes::idle_routes;
use rampart_api::served_apis;
use rampart_core::platform::clock::Clock;
use rampart_core::platform::counted::counted;
use rampart_core::platform::schema::Schema;
use rampart_core::readiness::Status;
use rampart_core::{Core, StartError};
use reqwest::{Client, Response};

use super::{ConfigFile, Run, StartupError};
use crate::admin_client::http_client;
use crate::config::{Config, KeyPair};
use crate::logging;
use crate::output;
use crate::server::{self, Certificates};
use crate::startup_error::Context as _;

/// Longest wait for an edge's word that it lives.
const ALIVE_MAX: Duration = Duration::from_secs(5);

/// Checks configuration, certificates, database, keys, routes, prices, policies, the running edge.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Ask the running edge alone, and fail without its answer: the health check of a container.
    #[arg(long)]
    running: bool,
    #[command(flatten)]
    settings: ConfigFile,
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

    fn odd_or_good(&self, what: &str, odd: Vec<String>, good: &str) {
        if odd.is_empty() {
            self.good(what, good);
        }
        for detail in odd {
            self.odd(what, detail);
        }
    }

    fn bad(&mut self, what: &str, detail: impl Display) {
        self.broken += 1;
        output::line(format_args!("broken  {what}: {detail}"));
    }
}

impl Run for Doctor {
    fn run(self) -> Result<(), StartupError> {
        let mut config = self.settings.load()?;
        if self.running {
            // Docker keeps the status 2 of a health check for itself.
            let alive = server::runtime(1)?
                .block_on(ask_edge(&config))
                .map_err(|error| StartupError::finding(error.to_string()))?;
            Findings::default().good("running edge", alive);
            return Ok(());
        }
        let settled = config
            .settle()
            .and_then(|()| logging::filter(&config.log).map(drop))
            .and_then(|()| server::check(&config));
        if let (None, Some(address)) = (&config.edge.public_url, config.edge.listen.first()) {
            config.core.public_url = format!("https://{address}");
        }
        let runtime = server::runtime(2)?;
        let inspected =
            runtime.block_on(Core::inspect(served_apis(), config.core.clone(), Clock::system()));
        let mut findings = Findings::default();
        look_at_configuration(&config, settled, inspected.as_ref().err(), &mut findings);
        look_at_listeners(&config, &mut findings);
        match inspected {
            Ok((core, schema)) => {
                look_at_schema(&config, &schema, &mut findings);
                if let Some(core) = core {
                    runtime.block_on(look_at_core(&core, &mut findings));
                }
            }
            Err(error) if error.subject() == "database" => findings.bad("database", error),
            // It was named among the settings.
            Err(_) => {}
        }
        match runtime.block_on(ask_edge(&config)) {
            Ok(alive) => findings.good("running edge", alive),
            Err(error) => findings.odd("running edge", error),
        }
        match findings.broken {
            0 => Ok(()),
            n => Err(format!("{n} of the checks above stop an edge from serving").into()),
        }
    }
}

/// The settings: as the binary judges them, and as the core does.
fn look_at_configuration(
    config: &Config,
    settled: Result<(), StartupError>,
    refused: Option<&StartError>,
    findings: &mut Findings,
) {
    let about = |subject: &str| refused.filter(|error| error.subject() == subject);
    match (settled, about("configuration")) {
        (Ok(()), None) => findings.good("configuration", "every key is known"),
        (Ok(()), Some(error)) => findings.bad("configuration", error),
        (Err(error), None) => findings.bad("configuration", error),
        (Err(error), Some(other)) => {
            findings.bad("configuration", error);
            findings.bad("configuration", other);
        }
    }
    match about("keys.master") {
        Some(error) => findings.bad("keys.master", error),
        None if config.core.keys.is_configured() => findings.good("keys.master", "set"),
        None => findings.odd("keys.master", "not set: the key stands in the database it protects"),
    }
}

fn look_at_listeners(config: &Config, findings: &mut Findings) {
    let pairs = config.edge.certificates();
    if !pairs.is_empty() {
        look_at_certificates("certificate", pairs, findings);
    } else if config.core.acme.is_configured() {
        findings.good("certificate", "the edges order it by ACME");
    } else {
        findings.bad("certificate", "set edge.tls.cert and edge.tls.key, or acme.domains");
    }
    for (name, pair) in [
        ("admin.tls", config.admin.tls.key_pair()),
        ("connectors.tls", config.connectors.tls.key_pair()),
    ] {
        if let Some(pair) = pair {
            look_at_certificates(name, vec![pair], findings);
        }
    }
    match &config.admin.token {
        Some(_) => findings.good("admin.token", "set"),
        None => findings.odd("admin.token", "not set: only operators' own tokens are accepted"),
    }
    if let Some(socket) = &config.edge.upgrade_socket {
        match server::upgrade::check_private(socket) {
            Ok(()) => findings.good("edge.upgrade_socket", "its folder can be used"),
            Err(error) => findings.odd("edge.upgrade_socket", format!("no upgrade: {error}")),
        }
    }
    if config.edge.public_url.is_none() {
        findings.odd("edge.public_url", "not set: links name the listening address");
    }
}

fn look_at_certificates(name: &str, pairs: Vec<KeyPair>, findings: &mut Findings) {
    let certificates = match Certificates::load(pairs) {
        Ok(certificates) => certificates,
        Err(error) => return findings.bad(name, error),
    };
    let warnings = certificates.expiry_warnings(Clock::system().now().timestamp());
    findings.odd_or_good(name, warnings, "chain and key fit");
}

fn look_at_schema(config: &Config, schema: &Schema, findings: &mut Findings) {
    let optional = schema.missing_optional();
    match schema.refusal() {
        Some(_) if config.core.database.migrate_on_start && schema.is_behind() => findings
            .odd("schema", format!("at {}; `rampart serve` will migrate it", schema.version())),
        Some(reason) => findings.bad("schema", reason),
        None if optional.is_empty() => findings.good("schema", format!("at {}", schema.version())),
        None => findings.odd("schema", format!("{optional} missing: run `rampart migrate`")),
    }
}

async fn look_at_core(core: &Core, findings: &mut Findings) {
    let missing = missing_for_live(core, None);
    if missing.is_empty() {
        findings.good("going live", "nothing is missing");
    } else {
        findings.odd("going live", format!("missing: {}", missing.join(", ")));
    }
    if let Some(unknown) = core.unknown_priced_pairs() {
        findings.odd_or_good("prices.sources", unknown, "their pairs exist");
    }
    match idle_routes(core).await {
        Ok(idle) => findings.odd_or_good("routes", idle, "their connectors have the capabilities"),
        Err(error) => findings.bad("routes", error),
    }
    match core.tenant_key_counts().await {
        Ok(keys) if keys.missing == 0 => {
            findings.good(
                "keys.per_tenant",
                counted(keys.total, "partner has keys", "partners have keys"),
            );
        }
        Ok(keys) if core.has_tenant_keys() => findings.odd(
            "keys.per_tenant",
            format!(
                "{} of their own once an edge runs",
                counted(keys.missing, "partner gets keys", "partners get keys")
            ),
        ),
        Ok(keys) => findings.odd(
            "keys.per_tenant",
            format!(
                "off: the master key seals the values of {}; switch it on when every edge runs \
                 this version",
                counted(keys.missing, "partner", "partners")
            ),
        ),
        Err(error) => findings.bad("keys.per_tenant", error),
    }
    if let Some(mailer) = &core.mailer {
        match mailer.check().await {
            Ok(()) => findings.good("mail", "the mail server answers"),
            Err(reason) => findings.odd("mail", format!("messages wait in the outbox: {reason}")),
        }
    }
    if let Err(error) = core.look_once().await {
        findings.bad("database", error);
    }
    for check in core.readiness().await.checks {
        match check.status {
            Status::Ok => findings.good(check.name, "as it should be"),
            Status::Degraded => findings.odd(check.name, check.detail),
            Status::Failed => findings.bad(check.name, check.detail),
        }
    }
}

/// Asks the edge of this configuration if it lives, where that takes no token: a call with the
/// break-glass token is an alarm.
async fn ask_edge(config: &Config) -> Result<String, StartupError> {
    let url = format!("http://{}/healthz", config.ops.listen);
    let client = http_client(Client::builder().timeout(ALIVE_MAX), None)?;
    let answer = client.get(&url).send().await.and_then(Response::error_for_status);
    answer.context("no edge answers at ops.listen")?;
    Ok(format!("answers at {}", config.ops.listen))
}
