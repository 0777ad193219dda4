//! The command line: one variant a command, and one arm of its [`Run::run`].

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::commands::{
    Run, apply, approval, archive, audit, bench, config, connector, currency, delivery, dependents,
    doctor, key, keys, ledger, mail, maintenance_window, migrate, offer, operator, order, overview,
    pair, partner, payment, payment_method, policy, price, reconciliation, review, route,
    savings_plan, screening, secret, shell, top, user, verification_key, webhook,
};
use crate::config::Config;
use crate::demo::Demo;
use crate::logging;
use crate::mock::Mock;
use crate::server;
use crate::startup_error::StartupError;

/// A multi-tenant edge for buying and selling crypto assets.
#[derive(Debug, Parser)]
#[command(name = "rampart", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommands of `rampart`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve partners until told to stop.
    Serve(Serve),
    /// Bring the schema of the database up to date.
    Migrate(migrate::Migrate),
    /// Archive the months whose retention is over, and make those to come.
    Archive(archive::Archive),
    /// Start everything on this machine, walk one purchase, keep serving.
    Demo(Demo),
    /// Look for what would stop an edge here.
    Doctor(doctor::Doctor),
    Mock(Mock),
    Top(top::Top),
    Bench(bench::Bench),
    Apply(apply::Apply),
    Export(apply::Export),
    #[command(subcommand)]
    Config(config::ConfigCommand),
    #[command(subcommand)]
    Partner(partner::Partner),
    #[command(subcommand)]
    Key(key::Key),
    #[command(subcommand)]
    Keys(keys::Keys),
    #[command(subcommand)]
    Policy(policy::Policy),
    #[command(subcommand)]
    Price(price::Price),
    #[command(subcommand)]
    Order(order::Order),
    #[command(subcommand)]
    Payment(payment::Payment),
    #[command(subcommand)]
    Operator(operator::Operator),
    #[command(subcommand)]
    Connector(connector::Connector),
    #[command(subcommand)]
    Currency(currency::Currency),
    #[command(subcommand)]
    Route(route::Route),
    Overview(overview::Overview),
    Dependents(dependents::Dependents),
    #[command(subcommand)]
    Review(review::Review),
    #[command(subcommand)]
    Screening(screening::Screening),
    #[command(subcommand)]
    Approval(approval::Approval),
    #[command(subcommand)]
    Audit(audit::Audit),
    #[command(subcommand)]
    Ledger(ledger::Ledger),
    #[command(subcommand)]
    Delivery(delivery::Delivery),
    #[command(subcommand)]
    Mail(mail::Mail),
    #[command(subcommand)]
    MaintenanceWindow(maintenance_window::MaintenanceWindow),
    #[command(subcommand)]
    Offer(offer::Offer),
    #[command(subcommand)]
    Pair(pair::Pair),
    #[command(subcommand)]
    PaymentMethod(payment_method::PaymentMethod),
    #[command(subcommand)]
    Reconciliation(reconciliation::Reconciliation),
    #[command(subcommand)]
    SavingsPlan(savings_plan::SavingsPlan),
    #[command(subcommand)]
    Secret(secret::Secret),
    #[command(subcommand)]
    User(user::User),
    #[command(subcommand)]
    VerificationKey(verification_key::VerificationKey),
    #[command(subcommand)]
    Webhook(webhook::Webhook),
    /// Print the completions of a shell: `rampart completions bash > /etc/bash_completion.d/rampart`.
    Completions(shell::Completions),
    /// Write the manual's pages to a folder.
    Man(shell::Man),
}

impl Run for Command {
    fn run(self) -> Result<(), StartupError> {
        match self {
            Self::Serve(command) => command.run(),
            Self::Migrate(command) => command.run(),
            Self::Archive(command) => command.run(),
            Self::Demo(command) => command.run(),
            Self::Doctor(command) => command.run(),
            Self::Mock(command) => command.run(),
            Self::Top(command) => command.run(),
            Self::Bench(command) => command.run(),
            Self::Apply(command) => command.run(),
            Self::Export(command) => command.run(),
            Self::Config(command) => command.run(),
            Self::Partner(command) => command.run(),
            Self::Key(command) => command.run(),
            Self::Keys(command) => command.run(),
            Self::Policy(command) => command.run(),
            Self::Price(command) => command.run(),
            Self::Order(command) => command.run(),
            Self::Payment(command) => command.run(),
            Self::Operator(command) => command.run(),
            Self::Connector(command) => command.run(),
            Self::Currency(command) => command.run(),
            Self::Route(command) => command.run(),
            Self::Overview(command) => command.run(),
            Self::Dependents(command) => command.run(),
            Self::Review(command) => command.run(),
            Self::Screening(command) => command.run(),
            Self::Approval(command) => command.run(),
            Self::Audit(command) => command.run(),
            Self::Ledger(command) => command.run(),
            Self::Delivery(command) => command.run(),
            Self::Mail(command) => command.run(),
            Self::MaintenanceWindow(command) => command.run(),
            Self::Offer(command) => command.run(),
            Self::Pair(command) => command.run(),
            Self::PaymentMethod(command) => command.run(),
            Self::Reconciliation(command) => command.run(),
            Self::SavingsPlan(command) => command.run(),
            Self::Secret(command) => command.run(),
            Self::User(command) => command.run(),
            Self::VerificationKey(command) => command.run(),
            Self::Webhook(command) => command.run(),
            Self::Completions(command) => command.run(),
            Self::Man(command) => command.run(),
        }
    }
}

/// Arguments of `rampart serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Settings in TOML; `RAMPART__SECTION__KEY` in the environment wins over it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Take the listeners over from the running process, then tell it to finish.
    #[arg(long)]
    upgrade: bool,
}

impl Run for Serve {
    fn run(self) -> Result<(), StartupError> {
        let config = Config::load(self.config.as_deref())?;
        logging::start(&config.log)?;
        server::run(config, self.upgrade)
    }
}
