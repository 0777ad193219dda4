//! The style of the repository, where neither rustfmt nor clippy looks. A rule that has an exception
//! names it here, in one of the lists.

#![expect(clippy::unwrap_used, reason = "a test that cannot read the repository must fail")]

mod guides;
mod layers;
mod parameters;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use rampart_tests::repository::root;

use self::parameters::tuple_parameters;

/// Lines of a Rust file.
const FILE_LINES_MAX: usize = 400;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 9] =
    ["common", "data", "helper", "helpers", "manager", "misc", "mod", "util", "utils"];

/// The one place of the harness that waits between two looks at something without an event.
const MAY_SLEEP: [&str; 1] = ["tests/src/deadline.rs"];

/// Files that may use floats: Prometheus takes measurements as floats.
const MAY_FLOAT: [&str; 3] =
    ["core/src/platform/metrics.rs", "core/src/platform/metrics/", "proxy/src/commands/top/"];

/// Tables that belong to no tenant. In every other one `client_id` comes first in the primary key.
const GLOBAL_TABLES: [&str; 47] = [
    "acme_account",
    "acme_certificate",
    "acme_challenge",
    "applied_configuration",
    "approval",
    "attempt_bucket",
    "audit",
    "audit_check",
    "audit_head",
    "change_counter",
    "connector",
    "connector_balance",
    "connector_event",
    "connector_token",
    "currency",
    "currency_pair",
    "deposit_address",
    "edge_key",
    "key_rotation",
    "lasting_key",
    "ledger_check",
    "maintenance_window",
    "nationality",
    "operator",
    "operator_form",
    "operator_identity",
    "operator_key",
    "operator_session",
    "operator_token",
    "payment_method",
    "payment_method_preference",
    "policy_component",
    "price",
    "price_reading",
    "quote_hour",
    "receipt_key",
    "reconciled_payment",
    "reconciliation",
    "refund_reference",
    "replication_mark",
    "reported_payment",
    "route",
    "signed_change",
    "supported_region",
    "user_key_master_seal",
    "user_search_backfill",
    "verification_level",
];

/// A file of the repository: its path from the root, with `/`, and its text.
struct Source {
    path: String,
    text: String,
}

impl Source {
    fn is(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|found| found == extension)
    }

    fn below(&self, folder: &str) -> bool {
        self.path.starts_with(folder)
    }

    /// The lines that `breaks` the rule, as `path:line: text`.
    fn lines_where(&self, breaks: impl Fn(&str) -> bool) -> Vec<String> {
        let numbered = self.text.lines().enumerate();
        let hits = numbered.filter(|(_, line)| breaks(line));
        hits.map(|(index, line)| format!("{}:{}: {}", self.path, index + 1, line.trim())).collect()
    }
}

/// Every file of the repository, without git's own (a file in a work tree) and what is built.
fn files() -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![root()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let (kind, name) = (entry.file_type().unwrap(), entry.file_name());
            if kind.is_file() && name != ".git" {
                files.push(entry.path());
            } else if kind.is_dir() && name != ".git" && name != "target" {
                folders.push(entry.path());
            }
        }
    }
    files
}

/// The files that are text.
fn sources() -> Vec<Source> {
    let root = root();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).ok()?;
        Some(Source { path: path.strip_prefix(&root).ok()?.to_str()?.to_owned(), text })
    };
    let sources: Vec<_> = files().into_iter().filter_map(read).collect();
    assert!(
        sources.iter().any(|source| source.path == "tests/tests/tidy/main.rs"),
        "looked elsewhere"
    );
    sources
}

fn rust() -> impl Iterator<Item = Source> {
    sources().into_iter().filter(|source| source.is("rs"))
}

/// Fails with the rule and every place that breaks it.
fn nothing_breaks(rule: &str, breaks: impl IntoIterator<Item = String>) {
    let list = breaks.into_iter().fold(String::new(), |mut list, place| {
        let _ = write!(list, "\n  {place}");
        list
    });
    assert!(list.is_empty(), "{rule}:{list}");
}

#[test]
fn files_are_short() {
    let long = rust().filter_map(|source| {
        let lines = source.text.lines().count();
        (lines > FILE_LINES_MAX).then(|| format!("{} has {lines}", source.path))
    });
    nothing_breaks("a Rust file has at most 400 lines; split it by subject", long);
}

#[test]
fn names_say_what_is_inside() {
    let empty = rust().filter(|source| {
        let path = source.path.trim_end_matches(".rs");
        path.split('/').any(|part| EMPTY_NAMES.contains(&part))
    });
    nothing_breaks(
        "a module is named after its subject, and its file after it (orders.rs beside orders/)",
        empty.map(|source| source.path),
    );
}

#[test]
fn no_test_is_ignored_or_sleeps() {
    let (ignored, sleep) = (concat!("#[", "ignore"), concat!("sleep", "("));
    let breaks = rust().flat_map(|source| {
        let may_sleep = !source.below("tests/") || MAY_SLEEP.contains(&source.path.as_str());
        source.lines_where(|line| line.contains(ignored) || (!may_sleep && line.contains(sleep)))
    });
    nothing_breaks("a test always runs, and waits for an event with a deadline", breaks);
}

#[test]
fn nothing_is_left_to_do() {
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("to", "do!(")];
    let kinds = ["md", "rs", "sql", "toml", "wit"];
    let breaks = sources()
        .into_iter()
        .filter(|source| source.below("deploy/") || kinds.iter().any(|kind| source.is(kind)))
        .flat_map(|source| source.lines_where(|line| marks.iter().any(|mark| line.contains(mark))));
    nothing_breaks("open work is an issue, not a comment", breaks);
}

/// First words of a doc comment that describe around a thing instead of saying what it is or does.
const INDIRECT_BEGINNINGS: [&str; 7] =
    ["How", "What", "Whatever", "Where", "Whether", "Who", "Whose"];
/// Most doc comments that may begin so, in a hundred.
const INDIRECT_PERCENT_MAX: usize = 2;

#[test]
fn doc_comments_say_what_a_thing_is_or_does() {
    let (mut comments, mut indirect) = (0, Vec::new());
    for source in rust() {
        // The first line of each block of doc comments.
        let mut inside = false;
        for (index, line) in source.text.lines().map(str::trim_start).enumerate() {
            let text = line.strip_prefix("/// ").or_else(|| line.strip_prefix("//! "));
            if let Some(text) = text.filter(|_| !inside) {
                comments += 1;
                let first = text.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
                if INDIRECT_BEGINNINGS.contains(&first) {
                    indirect.push(format!("{}:{}: {text}", source.path, index + 1));
                }
            }
            inside = line.starts_with("///") || line.starts_with("//!");
        }
    }
    let most = comments * INDIRECT_PERCENT_MAX / 100;
    let list = indirect.join("\n  ");
    assert!(
        indirect.len() <= most,
        "{} of {comments} doc comments begin with {INDIRECT_BEGINNINGS:?}, at most {most} may:\n  {list}",
        indirect.len()
    );
}

#[test]
fn layers_do_not_know_each_other() {
    let rules = [
        ("core/", "pingora"),
        ("plugins/", "pingora"),
        ("plugins/", "rampart_core"),
        ("plugins/", "sqlx"),
        ("proxy/", "sqlx"),
    ];
    let breaks = sources().into_iter().flat_map(|source| {
        let names = |line: &str| {
            let line = line.to_lowercase();
            rules.iter().any(|(folder, name)| source.below(folder) && line.contains(name))
        };
        source.lines_where(names)
    });
    nothing_breaks(
        "core and plugins never name Pingora, proxy and plugins never name sqlx",
        breaks,
    );
}

#[test]
fn every_exception_to_a_lint_has_a_reason() {
    let breaks = rust().flat_map(|source| {
        let bare =
            exceptions(&source.text).into_iter().filter(|(_, text)| !text.contains("reason"));
        bare.map(|(line, text)| format!("{}:{line}: {text}", source.path)).collect::<Vec<_>>()
    });
    nothing_breaks("an allow or expect says why", breaks);
}

/// The `allow` and `expect` attributes of a text, whole, with the line where each starts.
fn exceptions(text: &str) -> Vec<(usize, &str)> {
    let starts = ["#[allow(", "#[expect(", "#![allow(", "#![expect("];
    let (mut found, mut offset) = (Vec::new(), 0);
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if starts.iter().any(|start| line.trim_start().starts_with(start)) {
            let rest = text[offset..].trim_start();
            let end = rest.find(")]").map_or(rest.len(), |end| end + 2);
            found.push((index + 1, &rest[..end]));
        }
        offset += line.len();
    }
    found
}

#[test]
fn money_never_meets_a_float() {
    let breaks = rust()
        .filter(|source| source.below("core/"))
        .filter(|source| !MAY_FLOAT.iter().any(|place| source.below(place)))
        .flat_map(|source| source.lines_where(names_a_float));
    nothing_breaks("core has no float outside its metrics", breaks);
}

/// True if the code of a line has a float type, alone or behind a number.
fn names_a_float(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let mut words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.any(|word| {
        let number = word.strip_suffix("f32").or_else(|| word.strip_suffix("f64"));
        number.is_some_and(|number| number.chars().all(|c| c.is_ascii_digit() || c == '_'))
    })
}

#[test]
fn tenants_come_first_in_their_tables() {
    let migrations = sources().into_iter().filter(|source| source.is("sql"));
    let breaks = migrations.filter(|source| source.below("migrations/")).flat_map(|source| {
        let tables = tables(&source.text).into_iter();
        tables
            .filter(|(name, body)| !GLOBAL_TABLES.contains(&name.as_str()) && !is_by_client(body))
            .map(|(name, _)| format!("{}: {name}", source.path))
            .collect::<Vec<_>>()
    });
    nothing_breaks("client_id is first in the primary key of a tenant's table", breaks);
}

/// The tables that a migration creates: name, and the rest of the statement, without comments, in
/// small letters and with one space for every run of white space.
fn tables(sql: &str) -> Vec<(String, String)> {
    let code = sql.lines().map(|line| line.split("--").next().unwrap_or_default());
    let words = code.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ").to_lowercase();
    let table = |statement: &str| {
        let rest = statement.trim().strip_prefix("create table ")?;
        let (name, body) = rest.trim_start_matches("if not exists ").split_once('(')?;
        Some((name.trim().to_owned(), body.to_owned()))
    };
    words.split(';').filter_map(table).collect()
}

fn is_by_client(body: &str) -> bool {
    ["primary key (client_id,", "primary key (client_id)", "client_id uuid primary key"]
        .iter()
        .any(|key| body.contains(key))
}

#[test]
fn statements_name_their_columns() {
    let breaks = sources().into_iter().filter(|source| source.below("core/"));
    let breaks = breaks.flat_map(|source| source.lines_where(takes_every_column));
    nothing_breaks("an older edge must not see the columns of a newer schema", breaks);
}

/// True if a line of SQL asks for whatever columns a table has. Rows that the statement itself
/// describes are no table.
fn takes_every_column(line: &str) -> bool {
    let own = ["unnest(", "jsonb_to_recordset(", "asked", "current"];
    let mut selects = line.split("select * from ").skip(1);
    line.contains("returning *") || selects.any(|from| !own.iter().any(|own| from.starts_with(own)))
}

#[test]
fn no_file_knows_one_machine() {
    let traces = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("/ho", "me/"),
        concat!("arti", "factory"),
    ];
    let breaks = sources().into_iter().flat_map(|source| {
        source.lines_where(|line| traces.iter().any(|trace| line.contains(trace)))
    });
    nothing_breaks("no path or host of one machine", breaks);
}

#[test]
fn the_rules_find_what_they_forbid() {
    assert!(names_a_float("let rate: f64 = 1.0;") && names_a_float("let x = 1_000f64;"));
    assert!(!names_a_float("// an f64 would round") && !names_a_float("let buf64 = 0xaf64;"));

    let attributes = "fn a() {}\n    #[expect(\n  dead_code)]\n#[allow(x, reason = \"y\")]";
    let found = exceptions(attributes).into_iter().map(|(line, text)| (line, text.len()));
    assert_eq!(found.collect::<Vec<_>>(), [(2, 23), (4, 25)]);

    assert!(takes_every_column("select * from client") && takes_every_column("returning *"));
    assert!(!takes_every_column("select * from unnest($1::uuid[])"));

    let sql = "create table a ( -- (x)\n  client_id uuid,\n  b int,\n primary key (client_id, b));\n\
               create table if not exists c (b int, client_id uuid, primary key (b, client_id));";
    let found = tables(sql).into_iter().map(|(name, body)| (name, is_by_client(&body)));
    assert_eq!(found.collect::<Vec<_>>(), [("a".to_owned(), true), ("c".to_owned(), false)]);

    let signature = concat!(
        "f",
        "n a<T: Fn(u8) -> T>(b: &(dyn C + D), e: Vec<(F, G)>, h: &'i mut (\n J,\n K<L, M>,\n))"
    );
    assert_eq!(tuple_parameters(signature), ["1: a takes (J, K<L, M>)"]);
    let endpoint = concat!("type Request = (J, K);\nf", "n call(&self, (j, k): (J, K))");
    assert!(tuple_parameters(endpoint).is_empty());
    assert_eq!(tuple_parameters(&endpoint.replace("call", "read")), ["2: read takes (J, K)"]);
}
