//! `rampart completions` and `rampart man`: what a shell and `man` know of the commands. A shell asks
//! the running edge which partners, connectors and so on an argument may name; without a token, an
//! edge or its answer in time there are none.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use std::{env, fs};

use clap::{Args, Command, CommandFactory as _};
use clap_complete::env::Shells;
use clap_complete::{ArgValueCandidates, CompleteEnv, CompletionCandidate, Shell};
use serde_json::Value;

use super::{Run, StartupError};
use crate::admin_client::AdminClient;
use crate::cli::Cli;
use crate::config::Config;
use crate::output;
use crate::server;
use crate::startup_error::Context as _;

/// Environment variable by which a shell asks; it names the shell.
const VARIABLE: &str = "RAMPART_COMPLETE";
/// Program that is completed, and that is asked.
const PROGRAM: &str = "rampart";
/// Longest wait for the names: somebody has pressed a key.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Arguments of `rampart completions`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    shell: Shell,
}

impl Run for Completions {
    /// Prints the script: the commands, for shells that load it before they find the program, and
    /// behind them the registration of the program, which knows names too.
    fn run(self) -> Result<(), StartupError> {
        // Into memory first: a reader that goes away would end the generator with a panic.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), PROGRAM, &mut script);
        register(self.shell, &mut script);
        output::answer(script)
    }
}

/// Arguments of `rampart man`.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The folder; it is made if it is not there.
    folder: PathBuf,
}

impl Run for Man {
    fn run(self) -> Result<(), StartupError> {
        fs::create_dir_all(&self.folder)
            .and_then(|()| clap_mangen::generate_to(Cli::command(), &self.folder))
            .context(format_args!("'{}' cannot be written", self.folder.display()))
    }
}

/// A list of the operators' API, and the member of its rows that is their name.
type List = (&'static str, &'static str);

const PARTNERS: List = ("partners", "slug");
const CONNECTORS: List = ("connectors", "name");
const OPERATORS: List = ("operators", "name");
const PAIRS: List = ("pairs", "pair");
const PAYMENT_METHODS: List = ("payment-methods", "code");

/// Answers a shell that asks for completions, and ends the process; returns if none does.
pub(crate) fn answer() {
    CompleteEnv::with_factory(command).var(VARIABLE).bin(PROGRAM).complete();
}

/// Appends the part of a shell's script that asks the program.
fn register(shell: Shell, script: &mut Vec<u8>) {
    let shells = Shells::builtins();
    if let Some(shell) = shells.completer(&shell.to_string()) {
        // Writing into memory does not fail.
        let _ = shell.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, script);
    }
}

/// The commands, with arguments that complete names.
fn command() -> Command {
    completing(Cli::command(), "")
}

fn completing(command: Command, group: &str) -> Command {
    let name = command.get_name().to_owned();
    let command = command.mut_args(|arg| match list(group, &name, arg.get_id().as_str()) {
        Some((list, member)) => arg.add(ArgValueCandidates::new(move || names(list, member))),
        None => arg,
    });
    command.mut_subcommands(|subcommand| completing(subcommand, &name))
}

/// The list whose names an argument takes; `None` for the name of something new.
fn list(group: &str, command: &str, argument: &str) -> Option<List> {
    match (group, argument) {
        ("partner" | "connector" | "operator", "slug" | "name") if command == "add" => None,
        (_, "slug" | "partner") => Some(PARTNERS),
        (_, "connector") | ("connector", "name") => Some(CONNECTORS),
        ("operator", "name") => Some(OPERATORS),
        (_, "pair") => Some(PAIRS),
        ("payment-method", "code") | ("maintenance-window", "payment_method") => {
            Some(PAYMENT_METHODS)
        }
        _ => None,
    }
}

fn names(list: &str, member: &str) -> Vec<CompletionCandidate> {
    let rows = ask(list).unwrap_or_default();
    let names = rows.as_array().into_iter().flatten().filter_map(|row| row[member].as_str());
    names.map(CompletionCandidate::new).collect()
}

/// The first page of a list.
fn ask(list: &str) -> Option<Value> {
    let config = Config::load(config_file(env::args_os()).as_deref()).ok()?;
    let admin = AdminClient::new(config.admin.base_url(), &config).ok()?;
    let runtime = server::runtime(1).ok()?;
    let asked = async { tokio::time::timeout(WAIT_MAX, admin.page(list)).await };
    let page = runtime.block_on(asked);
    // The lookup of a host may take longer than the wait.
    runtime.shutdown_background();
    let (rows, _) = page.ok()?.ok()?;
    Some(rows)
}

/// The file that the command line names so far. Bash makes words of their own of equals signs.
fn config_file(mut words: impl Iterator<Item = OsString>) -> Option<PathBuf> {
    const OPTION: &str = "--config";
    loop {
        let word = words.next()?;
        if word == OPTION {
            return words.find(|word| word != "=").map(PathBuf::from);
        }
        let value = word.to_str().and_then(|word| word.strip_prefix(OPTION)?.strip_prefix('='));
        if let Some(file) = value {
            return Some(PathBuf::from(file));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(line: &str) -> Option<PathBuf> {
        config_file(line.split(' ').map(OsString::from))
    }

    #[test]
    fn the_configuration_is_the_one_of_the_command_line() {
        let named = Some(PathBuf::from("a.toml"));
        assert_eq!(file("rampart partner show --config a.toml ac"), named);
        assert_eq!(file("rampart partner show --config=a.toml ac"), named);
        assert_eq!(file("rampart partner show --config = a.toml ac"), named);
        assert_eq!(file("rampart partner show ac"), None);
    }

    #[test]
    fn arguments_complete_what_exists() {
        assert_eq!(list("partner", "show", "slug"), Some(PARTNERS));
        assert_eq!(list("partner", "add", "slug"), None);
        assert_eq!(list("staff", "invite", "slug"), Some(PARTNERS));
        assert_eq!(list("reconciliation", "create", "connector"), Some(CONNECTORS));
        assert_eq!(list("connector", "rotate", "name"), Some(CONNECTORS));
        assert_eq!(list("connector", "add", "name"), None);
        assert_eq!(list("key", "issue", "name"), None);
    }
}
