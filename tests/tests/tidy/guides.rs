//! Files that the guides name: each is where they say.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::{Source, nothing_breaks, root, sources};

/// Folders in the root whose files the README names.
const FOLDERS: [&str; 7] =
    ["core/", "deploy/", "migrations/", "plugins/", "proxy/", "tests/", "wit/"];

/// Members of results that edges read, by the kind of their command.
const RESULTS: [(&str, &[&str]); 8] = [
    ("payment.create", &["redirectUrl", "clientToken", "bankTransfer", "providerReference"]),
    ("payout.send", &["transactionId"]),
    ("transfer.send", &["providerReference", "completed"]),
    ("deposit.address", &["address", "tag"]),
    ("identity.start", &["url"]),
    ("screening.check", &["decision", "reasons"]),
    ("card.verify", &["accountIdentifier", "token", "disabled"]),
    ("wallet-provider.verify", &["accountIdentifier", "accountHolderName"]),
];

/// A migration by its number, a file of the core by its path.
fn place(path: &str) -> String {
    match path.strip_prefix("core/src/").or_else(|| path.strip_prefix("core/api/src/")) {
        Some(path) => path.to_owned(),
        None => path.trim_start_matches("migrations/").chars().take(4).collect(),
    }
}

#[test]
fn what_is_not_portable_is_where_the_list_says() {
    let list = fs::read_to_string(root().join("migrations/PORTABILITY.md")).unwrap();
    let has_statements = |source: &Source| {
        source.is("sql") && source.below("migrations/") || source.is("rs") && source.below("core/")
    };
    let statements: Vec<_> = sources().into_iter().filter(has_statements).collect();
    let rows: Vec<_> = list.lines().filter_map(|line| line.strip_prefix("| `")).collect();
    assert!(rows.len() > 20, "looked elsewhere");
    let untrue = rows.into_iter().filter_map(|row| {
        let mut cells = row.split(" | ");
        let (text, places) = (cells.next()?.trim_end_matches('`'), cells.next()?);
        let has = |source: &&Source| {
            let mut lines = source.lines_where(|line| {
                let words = line.split("--").next().unwrap_or_default().trim_start();
                !words.starts_with("//") && words.to_lowercase().contains(text)
            });
            lines.pop().is_some()
        };
        let found: BTreeSet<_> = statements.iter().filter(has).map(|s| place(&s.path)).collect();
        let listed: BTreeSet<_> = places.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        let holds = if places == "many" { found.len() > 3 } else { found == listed };
        (!holds).then(|| format!("{text}: {found:?}"))
    });
    nothing_breaks("migrations/PORTABILITY.md says where each thing is", untrue);
}

#[test]
fn the_readme_names_the_two_commands() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap_or_default();
    let missing = ["make demo", "make test"].into_iter().filter(|name| !readme.contains(name));
    nothing_breaks("README.md names the commands that do everything", missing.map(str::to_owned));
}

#[test]
fn paths_that_the_readme_names_are_there() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    // One with a placeholder is none.
    let is_path = |name: &&str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
        FOLDERS.iter().any(|folder| name.starts_with(folder)) && name.chars().all(is_plain)
    };
    let paths: Vec<_> = readme.split('`').skip(1).step_by(2).filter(is_path).collect();
    assert!(paths.len() > 50, "looked elsewhere");
    let missing = paths.into_iter().filter(|path| !root().join(path).exists());
    nothing_breaks("README.md names files that there are", missing.map(str::to_owned));
}

#[test]
fn the_endpoint_that_the_readme_shows_is_the_one_that_compiles() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let example = format!("```rust\n{}```\n", read("core/src/endpoint/example.rs"));
    assert!(read("README.md").contains(&example), "README.md shows another endpoint:\n{example}");
}

#[test]
fn the_guide_of_connectors_has_every_command() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let document: Value =
        serde_json::from_str(&read("tests/fixtures/openapi-connectors.json")).unwrap();
    let kinds = document["components"]["schemas"]["CommandKind"]["enum"].as_array().unwrap();
    let guide = read("plugins/CONNECTORS.md");
    let kinds = kinds.iter().filter_map(Value::as_str);
    let missing = kinds.filter(|kind| !guide.contains(&format!("\n| `{kind}` | ")));
    nothing_breaks("plugins/CONNECTORS.md has every command", missing.map(str::to_owned));
}

#[test]
fn the_guide_of_connectors_has_what_edges_read_of_results() {
    let guide = fs::read_to_string(root().join("plugins/CONNECTORS.md")).unwrap();
    let missing = RESULTS.iter().flat_map(|(kind, members)| {
        let row = guide.lines().find(|line| line.starts_with(&format!("| `{kind}` | ")));
        let result = row.and_then(|row| row.rsplit(" | ").next()).unwrap_or_default();
        let is_missing = move |member: &&&str| !result.contains(&format!("`{member}`"));
        members.iter().filter(is_missing).map(move |member| format!("{kind}: {member}"))
    });
    nothing_breaks("plugins/CONNECTORS.md has the members of results", missing);
}

#[test]
fn the_list_of_what_must_hold_has_every_attack() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let (attacks, list) = (read("tests/attacks/main.rs"), read("tests/README.md"));
    let families = attacks.split("family!(").skip(1).filter_map(|rest| rest.split('"').nth(1));
    let families: Vec<_> = families.collect();
    assert!(families.len() > 10, "looked elsewhere");
    let missing = families.into_iter().filter(|name| !list.contains(&format!("`{name}`")));
    nothing_breaks("tests/README.md has every family of attacks", missing.map(str::to_owned));
}

#[test]
fn links_of_guides_lead_somewhere() {
    let guides: Vec<_> = sources().into_iter().filter(|source| source.is("md")).collect();
    let broken = guides.iter().flat_map(|guide| {
        let folder = root().join(&guide.path).parent().unwrap().to_path_buf();
        links(&guide.text).filter_map(move |link| {
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { root().join(&guide.path) } else { folder.join(path) };
            let leads = target.exists() && (heading.is_empty() || has_heading(&target, heading));
            (!leads).then(|| format!("{}: {link}", guide.path))
        })
    });
    nothing_breaks("links of guides lead to files and headings that there are", broken);
}

/// The relative links of a guide.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains(':') && !target.starts_with('/'))
}

/// True if the guide has a heading with this anchor.
fn has_heading(guide: &Path, anchor: &str) -> bool {
    let text = fs::read_to_string(guide).unwrap_or_default();
    text.lines().filter(|line| line.starts_with('#')).any(|line| {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).eq(anchor.chars())
    })
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let found: Vec<_> = links("[a](b.md#c), [d](https://example.com), [e](/docs)").collect();
    assert_eq!(found, ["b.md#c"]);
    let readme = root().join("README.md");
    assert!(has_heading(&readme, "code-map") && !has_heading(&readme, "no-such-heading"));
}
