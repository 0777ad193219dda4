//! `rampart config reference`.

use std::fmt::Write as _;

use clap::Subcommand;

use super::{Run, StartupError};
use crate::config::reference::{self, Section, Setting};
use crate::output;
use crate::startup_error::Context as _;

/// Begins the page that `--markdown` prints.
const PAGE: &str = "\
# Configuration

Every setting of `rampart serve`, as `rampart config reference --markdown` prints it. A setting comes from the TOML file of `--config`, or from the
environment, which wins: `edge.threads` is `RAMPART__EDGE__THREADS` there, and a secret replaces the one of the file, whether either is a value or a
`…_file`; an empty `…_file` beside a value is none. `<name>` stands for a name of your own, `[]` for each element of a list. An unknown key, a value of
another kind or out of bounds and an empty secret are errors that name the key.

`rampart demo` takes the environment too, but for what a demo has of its own: database, documents, certificates, `edge.public_url`, `admin.url` and
`admin.tls`, `edge.proxy_protocol` and `edge.upgrade_socket`, `ratelimit.redis_url`. It calls programs on loopback and takes policies unsigned.
";

/// The settings that there are.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print every setting with type, unit, default and bounds.
    Reference {
        /// Print a JSON array with an object for each setting.
        #[arg(long)]
        json: bool,
        /// Print a page in Markdown.
        #[arg(long, conflicts_with = "json")]
        markdown: bool,
    },
}

impl Run for ConfigCommand {
    fn run(self) -> Result<(), StartupError> {
        let sections = reference::sections();
        let text = match self {
            Self::Reference { json: true, .. } => json(&sections)?,
            Self::Reference { markdown: true, .. } => markdown(&sections),
            Self::Reference { .. } => plain(&sections),
        };
        output::answer(text)
    }
}

fn json(sections: &[Section]) -> Result<String, StartupError> {
    let settings: Vec<&Setting> = sections.iter().flat_map(|section| &section.settings).collect();
    let text =
        serde_json::to_string_pretty(&settings).context("the reference cannot be printed")?;
    Ok(text + "\n")
}

fn plain(sections: &[Section]) -> String {
    let mut out = String::new();
    for Section { name, description, settings } in sections {
        let _ = writeln!(out, "[{name}] {description}\n");
        for setting in settings {
            let mut facts = setting.kind.clone();
            if let Some(unit) = &setting.unit {
                let _ = write!(facts, " ({unit})");
            }
            let bounds = setting.bounds();
            if !bounds.is_empty() {
                let _ = write!(facts, "; {bounds}");
            }
            let _ = writeln!(
                out,
                "{}\n    {facts}; default: {}\n    {}\n",
                setting.key,
                setting.default_text(),
                setting.description
            );
        }
    }
    out
}

fn markdown(sections: &[Section]) -> String {
    let mut out = PAGE.to_owned();
    for Section { name, description, settings } in sections {
        let _ = write!(
            out,
            "\n## {name}\n\n{description}\n\n| key | type | unit | default | bounds | meaning |\n\
             |---|---|---|---|---|---|\n"
        );
        for setting in settings {
            let _ = writeln!(
                out,
                "| `{}` | {} | {} | {} | {} | {} |",
                setting.key,
                setting.kind,
                setting.unit.as_deref().unwrap_or_default(),
                setting.default_text(),
                setting.bounds(),
                setting.description
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_the_reference() {
        let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/CONFIGURATION.md"));
        assert!(
            page == markdown(&reference::sections()),
            "write it anew: rampart config reference --markdown > proxy/CONFIGURATION.md"
        );
    }

    #[test]
    fn programs_get_every_setting() {
        let sections = reference::sections();
        let listed: Vec<serde_json::Value> =
            serde_json::from_str(&json(&sections).unwrap()).unwrap();
        let count: usize = sections.iter().map(|section| section.settings.len()).sum();
        assert_eq!(listed.len(), count);
        let threads = listed.iter().find(|row| row["key"] == "edge.threads").unwrap();
        assert_eq!((&threads["unit"], &threads["max"]), (&"threads".into(), &1_024.into()));
    }

    #[test]
    fn people_get_every_setting() {
        let sections = reference::sections();
        let text = plain(&sections);
        for setting in sections.iter().flat_map(|section| &section.settings) {
            assert!(text.contains(&format!("\n{}\n    ", setting.key)), "{}", setting.key);
        }
        assert!(
            text.contains("    integer (seconds); 1 to 60; default: 10\n"),
            "no line of edge.request_header_timeout_seconds in {text}"
        );
    }
}
