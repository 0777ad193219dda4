//! The pages of the alerts: one each, with the four sections, and lines that run.

use std::fs;
use std::path::Path;
use std::process::Command;

use futures::{StreamExt as _, stream};
use rampart_tests::deadline::SOON;
use rampart_tests::edge::Edge;
use rampart_tests::process::{Process, binary};

use crate::prometheus::alerts;
use crate::{names, read, root};

/// Sections of a page, in their order.
const SECTIONS: [&str; 4] = ["What it means", "Look here", "Do this", "Verify"];
/// The partner that the lines ask about.
const PARTNER: &str = "acme";
/// A command that changes what the lines of other pages look at: its pages run alone.
const CHANGE: &str = "rampart partner suspend";
/// Pages whose lines run at the same time: most of it they wait for an edge or a new process.
const PAGES_AT_ONCE: usize = 4;

#[test]
fn every_alert_has_a_page() {
    let mut pages = names("runbooks", "md");
    pages.retain(|page| page != "README");
    assert_eq!(pages, alerts().into_iter().collect::<Vec<_>>());
    for page in pages {
        let text = read(&format!("runbooks/{page}.md"));
        let titles: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(titles, SECTIONS, "{page}");
        assert!(text.starts_with(&format!("# {page}\n\n")), "{page}");
        let verify = text.split("## Verify").nth(1).unwrap();
        assert!(verify.contains("```bash\n"), "{page}: nothing verifies that it is over");
    }
}

/// The lines for the shell of a page, in their order.
fn lines(page: &str) -> String {
    let text = read(&format!("runbooks/{page}.md"));
    let blocks = text.split("```bash\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap()).collect()
}

/// The log lines that a page quotes: at least this many words in small letters.
const LOG_WORDS_MIN: usize = 4;

/// The log lines that a page quotes.
fn log_lines(page: &str) -> Vec<String> {
    let text = read(&format!("runbooks/{page}.md"));
    let prose: String = text.split("```").step_by(2).collect();
    let quoted = prose.split('`').skip(1).step_by(2);
    let quoted = quoted.map(|text| text.split_whitespace().collect::<Vec<_>>());
    let is_word = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '\'');
    let lines = quoted.filter(|words| words.len() >= LOG_WORDS_MIN && words.iter().all(is_word));
    lines.map(|words| words.join(" ")).collect()
}

/// The sources in a folder.
fn sources(folder: &Path) -> String {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let texts = entries.map(|path| match path.is_dir() {
        true => sources(&path),
        false => fs::read_to_string(&path).unwrap_or_default(),
    });
    texts.collect()
}

#[test]
fn the_log_lines_that_pages_quote_are_logged() {
    let sources = sources(&root().join("core"));
    let quoted: Vec<_> = alerts().iter().flat_map(|alert| log_lines(alert)).collect();
    assert!(quoted.len() > 5, "{quoted:?}");
    for line in quoted {
        assert!(sources.contains(&format!("\"{line}\"")), "{line}");
    }
}

/// The folder of Postgres' programs.
fn postgres_programs() -> String {
    let found = Command::new(root().join("deploy/find-postgres")).output().unwrap().stdout;
    String::from_utf8(found).unwrap().trim().to_owned()
}

/// bash with the variables that the folder's README lists.
fn shell(edge: &Edge, postgres: &str, script: &str) -> Command {
    let setup = edge.setup();
    let own = binary().parent().unwrap().display().to_string();
    let mut bash = Command::new("bash");
    bash.args(["-euo", "pipefail", "-c", script]).current_dir(setup.folder()).env_clear();
    bash.env("PATH", format!("{own}:{postgres}:/usr/local/bin:/usr/bin:/bin"));
    bash.envs(setup.environment());
    bash.env("OPS", format!("http://{}", edge.ops));
    bash.env("RAMPART__ADMIN__URL", format!("http://{}", edge.admin));
    bash.env("BASE", edge.url("")).env("CA", setup.folder().join("cert.pem"));
    bash.env("DATABASE_URL", setup.database()).env("PARTNER", PARTNER);
    bash
}

/// Runs the lines of a page, and fails unless they show something.
async fn run_page(edge: &Edge, postgres: &str, alert: String) {
    let bash = Process::spawn(shell(edge, postgres, &lines(&alert)));
    let status = bash.ended_within(SOON * 2).await;
    assert!(status.success(), "{alert}: {:?}\n{:?}", bash.out(), bash.err());
    assert!(!bash.out().is_empty(), "{alert} shows nothing");
}

#[tokio::test]
async fn the_lines_of_every_page_run() {
    let edge = Edge::start().await;
    let postgres = postgres_programs();
    let partner = edge.partner(PARTNER).await;
    partner.get("/api/v2/prices").await.assert_status(200);
    let (changing, looking): (Vec<_>, Vec<_>) =
        alerts().into_iter().partition(|alert| lines(alert).contains(CHANGE));
    let run = |alert| run_page(&edge, &postgres, alert);
    stream::iter(looking).for_each_concurrent(PAGES_AT_ONCE, run).await;
    for alert in changing {
        run(alert).await;
    }
}

#[tokio::test]
async fn the_page_of_queues_tells_of_each() {
    let edge = Edge::start().await;
    let metrics = edge.ops("/metrics").await.text().to_owned();
    let page = read("runbooks/RampartQueueWaits.md");
    let mark = "rampart_queue_length{queue=\"";
    let queues = metrics.lines().filter_map(|line| line.strip_prefix(mark)?.split('"').next());
    let queues: Vec<_> = queues.collect();
    assert!(queues.len() > 5, "{metrics}");
    for queue in queues {
        assert!(page.contains(&format!("`{queue}`")), "{queue}");
    }
}
