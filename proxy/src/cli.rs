//! The command line: one variant a command, and one arm of [`Command::run`].

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::commands::Run;
use crate::commands::apply::{Apply, Export};
use crate::commands::approval::Approval;
use crate::commands::archive::Archive;
use crate::commands::audit::Audit;
use crate::commands::bench::Bench;
use crate::commands::config::ConfigCommand;
use crate::commands::connector::Connector;
use crate::commands::currency::Currency;
use crate::commands::delivery::Delivery;
use crate::commands::dependents::Dependents;
use crate::commands::doctor::Doctor;
use crate::commands::key::Key;
use crate::commands::keys::Keys;
use crate::commands::ledger::Ledger;
use crate::commands::mail::Mail;
use crate::commands::maintenance_window::MaintenanceWindow;
use crate::commands::migrate::Migrate;
use crate::commands::offer::Offer;
use crate::commands::operator::Operator;
use crate::commands::order::Order;
use crate::commands::overview::Overview;
use crate::commands::pair::Pair;
use crate::commands::partner::Partner;
use crate::commands::payment::Payment;
use crate::commands::payment_method::PaymentMethod;
use crate::commands::policy::Policy;
use crate::commands::price::Price;
use crate::commands::reconciliation::Reconciliation;
use crate::commands::review::Review;
use crate::commands::route::Route;
use crate::commands::savings_plan::SavingsPlan;
use crate::commands::screening::Screening;
use crate::commands::secret::Secret;
use crate::commands::shell::{Completions, Man};
use crate::commands::top::Top;
use crate::commands::user::User;
use crate::commands::verification_key::VerificationKey;
use crate::commands::webhook::Webhook;
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
    Migrate(Migrate),
    /// Archive the months whose retention is over, and make those to come.
    Archive(Archive),
    /// Start everything on this machine, walk one purchase, keep serving.
    Demo(Demo),
    /// Look for what would stop an edge here.
    Doctor(Doctor),
    Mock(Mock),
    Top(Top),
    Bench(Bench),
    Apply(Apply),
    Export(Export),
    #[command(subcommand)]
    Config(ConfigCommand),
    #[command(subcommand)]
    Partner(Partner),
    #[command(subcommand)]
    Key(Key),
    #[command(subcommand)]
    Keys(Keys),
    #[command(subcommand)]
    Policy(Policy),
    #[command(subcommand)]
    Price(Price),
    #[command(subcommand)]
    Order(Order),
    #[command(subcommand)]
    Payment(Payment),
    #[command(subcommand)]
    Operator(Operator),
    #[command(subcommand)]
    Connector(Connector),
    #[command(subcommand)]
    Currency(Currency),
    #[command(subcommand)]
    Route(Route),
    Overview(Overview),
    Dependents(Dependents),
    #[command(subcommand)]
    Review(Review),
    #[command(subcommand)]
    Screening(Screening),
    #[command(subcommand)]
    Approval(Approval),
    #[command(subcommand)]
    Audit(Audit),
    #[command(subcommand)]
    Ledger(Ledger),
    #[command(subcommand)]
    Delivery(Delivery),
    #[command(subcommand)]
    Mail(Mail),
    #[command(subcommand)]
    MaintenanceWindow(MaintenanceWindow),
    #[command(subcommand)]
    Offer(Offer),
    #[command(subcommand)]
    Pair(Pair),
    #[command(subcommand)]
    PaymentMethod(PaymentMethod),
    #[command(subcommand)]
    Reconciliation(Reconciliation),
    #[command(subcommand)]
    SavingsPlan(SavingsPlan),
    #[command(subcommand)]
    Secret(Secret),
    #[command(subcommand)]
    User(User),
    #[command(subcommand)]
    VerificationKey(VerificationKey),
    #[command(subcommand)]
    Webhook(Webhook),
    /// Print the completions of a shell: `rampart completions bash > /etc/bash_completion.d/rampart`.
    Completions(Completions),
    /// Write the manual's pages to a folder.
    Man(Man),
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
