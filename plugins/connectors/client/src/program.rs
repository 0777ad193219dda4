//! The beginning of every connector's program: arguments, configuration, log, the end.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use serde::de::DeserializeOwned;
use tracing_subscriber::EnvFilter;

/// Arguments of a connector.
#[derive(Debug, Parser)]
pub struct Arguments {
    /// The configuration, in TOML
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Check the configuration, the edge and the provider, and end
    #[arg(long)]
    pub check: bool,
}

/// Runs a connector: reads arguments and configuration, then checks or serves until it is told to
/// end. Both are given the configuration and end with one sentence for a person if they fail.
///
/// A connector may be killed at any time, so that SIGTERM ends it at once.
pub fn run<S, C, R>(check: impl FnOnce(S) -> C, serve: impl FnOnce(S) -> R) -> ExitCode
where
    S: DeserializeOwned,
    C: Future<Output = Result<(), String>>,
    R: Future<Output = Result<(), String>>,
{
    let arguments = Arguments::parse();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let ended = read(&arguments.config).and_then(|settings| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("cannot start: {error}"))?;
        runtime.block_on(async {
            if arguments.check {
                check(settings).await?;
                println!("the configuration is good");
                return Ok(());
            }
            tokio::select! {
                ended = serve(settings) => ended,
                told = told_to_end() => told,
            }
        })
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

/// Reads a configuration.
///
/// # Errors
/// One sentence with the line's number, and without the line: a secret may have been written there.
pub fn read<S: DeserializeOwned>(path: &Path) -> Result<S, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    toml::from_str(&text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = before.map(|before| format!(", line {}", before.matches('\n').count() + 1));
        format!("{}{}: {}", path.display(), line.unwrap_or_default(), error.message())
    })
}

/// Returns at SIGTERM or SIGINT.
async fn told_to_end() -> Result<(), String> {
    use tokio::signal::unix::{SignalKind, signal};
    let listen = |kind| signal(kind).map_err(|error| format!("cannot listen to signals: {error}"));
    let (mut term, mut int) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::SecretSource;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Settings {
        #[expect(dead_code, reason = "it is read alone")]
        key: SecretSource,
    }

    #[test]
    fn a_secret_in_the_configuration_is_not_shown() {
        let path = std::env::temp_dir().join(format!("rampart-settings-{}", std::process::id()));
        for (line, told) in [
            ("key = \"sk_live_1\"", "line 2: a secret's place is {"),
            ("key = { secret = \"sk_live_1\" }", "line 2: a secret's place is {"),
            ("secret = \"sk_live_1\"", "line 2: unknown field `secret`"),
        ] {
            std::fs::write(&path, format!("# One\n{line}\n")).unwrap();
            let refused = read::<Settings>(&path).unwrap_err();
            assert!(refused.contains(told) && !refused.contains("sk_live_1"), "{refused}");
        }
        std::fs::write(&path, "key = { environment = \"KEY\" }\n").unwrap();
        read::<Settings>(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
    }
}
