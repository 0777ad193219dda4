//! The command line: one line a command.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::commands::{
    Call, Run, Target, apply, audit, bench, compliance, config, connector, doctor, keys, ledger,
    market, notify, operator, order, overview, partner, payment, policy, schema, shell, top, user,
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

/// Makes the subcommands: a variant of each, and the call of what it holds. Groups of commands that
/// call a running edge stand in braces, all others in parentheses.
macro_rules! commands {
    ($($(#[$attribute:meta])* $name:ident $(($command:ty))? $({ $group:ty })?,)+) => {
        /// The subcommands of `rampart`.
        #[derive(Debug, Subcommand)]
        pub(crate) enum Command {
            $(
                $(#[$attribute])*
                $name $(($command))? $({
                    #[command(flatten)]
                    target: Target,
                    #[command(subcommand)]
                    group: $group,
                })?,
            )+
        }

        impl Run for Command {
            fn run(self) -> Result<(), StartupError> {
                match self {
                    $(
                        $(Self::$name(command) => <$command as Run>::run(command),)?
                        $(Self::$name { target, group } => <$group>::call(&group, &target),)?
                    )+
                }
            }
        }
    };
}

commands! {
    /// Serve partners until told to stop.
    Serve(Serve),
    /// Bring the schema of the database up to date.
    Migrate(schema::Migrate),
    /// Archive the months whose retention is over, and make those to come.
    Archive(schema::Archive),
    /// Start everything on this machine, walk one purchase, keep serving.
    Demo(Demo),
    /// Look for what would stop an edge here.
    Doctor(doctor::Doctor),
    Mock(Mock),
    Top(top::Top),
    Bench(bench::Bench),
    Apply(apply::Apply),
    Export(apply::Export),
    #[command(subcommand)] Config(config::ConfigCommand),
    Partner { partner::Partner },
    Key { partner::Key },
    Keys { keys::Keys },
    #[command(subcommand)] Policy(policy::Policy),
    Price { market::Price },
    Order { order::Order },
    Payment { payment::Payment },
    Operator { operator::Operator },
    Connector { connector::Connector },
    Currency { market::Currency },
    Route { connector::Route },
    Overview(overview::Overview),
    Dependents(overview::Dependents),
    Review { compliance::Review },
    Screening { compliance::Screening },
    Approval { operator::Approval },
    Audit { audit::Audit },
    Ledger { ledger::Ledger },
    Delivery { notify::Delivery },
    Mail { notify::Mail },
    MaintenanceWindow { market::MaintenanceWindow },
    Offer { market::Offer },
    Pair { market::Pair },
    PaymentMethod { market::PaymentMethod },
    Reconciliation { payment::Reconciliation },
    SavingsPlan { user::SavingsPlan },
    Secret { partner::Secret },
    User { user::User },
    VerificationKey { partner::VerificationKey },
    Webhook { partner::Webhook },
    /// Print the completions of a shell: `rampart completions bash > /etc/bash_completion.d/rampart`.
    Completions(shell::Completions),
    /// Write the manual's pages to a folder.
    Man(shell::Man),
}

/// Arguments of `rampart serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Settings in TOML; `RAMPART__SECTION__KEY` in the environment wins over it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Take the listeners over from the running process, once SIGQUIT tells it to hand them over.
    #[arg(long)]
    upgrade: bool,
}

impl Run for Serve {
    fn run(self) -> Result<(), StartupError> {
        let config = Config::load(self.config.as_deref())?;
        let log = logging::start(&config.log)?;
        server::run(config, self.upgrade, &log)
    }
}
