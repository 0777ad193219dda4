//! The layers of the core: a room uses those below it, and no circle of imports has more than three
//! files. Read off `use` lines and `crate::` paths; test modules do not count.

#![expect(clippy::panic, reason = "a module that stands in no room must fail its test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::root;

/// Rooms from the bottom to the top; those of one row may know each other's model. The longest
/// prefix of a module's path counts: `trading::catalogue` and `policies::runtime` are what a
/// snapshot holds, so they stand below the tenants. `rampart_types` is a package of its own, below
/// all of these. `Core` itself is in the crate's root and is handed to every endpoint: naming it is
/// no arrow. The rooms of two packages: `rampart-core`, and from `operate` on `rampart-api`, which names
/// the rooms below like its own.
const LAYERS: &[&[&str]] = &[
    &["platform"],
    &["http"],
    &["policies::runtime", "trading::catalogue"],
    &["tenancy"],
    &["auth"],
    &["endpoint"],
    &["policies", "trading", "money", "users", "partners", "notify"],
    &["queues", "readiness"],
    &["bootstrap", "lib"],
    &["operate"],
    &["api", "connectors_api", "operation_ids", "operators_api", "partners_api", "workers"],
];

/// Most files that may import each other in a circle: a model, its one helper and its one rule.
const CIRCLE_MAX: usize = 3;

/// Imports by file: modules as `trading::orders`, the crate's root as `lib`.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// The files below a folder that are no tests, by module.
fn modules(folder: &Path, path: &str, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let stem = name.trim_end_matches(".rs");
        let module = if path.is_empty() { stem.to_owned() } else { format!("{path}::{stem}") };
        if entry.file_type().unwrap().is_dir() {
            modules(&entry.path(), &module, found);
        } else if stem != "tests" && !module.contains("::tests::") {
            found.insert(module, fs::read_to_string(entry.path()).unwrap());
        }
    }
}

/// The code of a file: without its test module and without comments.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// The paths that a use tree names: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn expand(tree: &str, paths: &mut Vec<String>) {
    let Some((prefix, rest)) = tree.split_once('{') else {
        paths.push(tree.split(" as ").next().unwrap_or_default().trim().to_owned());
        return;
    };
    let (mut depth, mut member) = (0_usize, String::new());
    for c in rest.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&format!("{prefix}{}", member.trim()), paths);
                member.clear();
                continue;
            }
            _ => {}
        }
        member.push(c);
    }
    if !member.trim().is_empty() {
        expand(&format!("{prefix}{}", member.trim()), paths);
    }
}

/// Every path in a file's code that begins at the crate, at itself or at a parent.
fn paths(code: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let mut rest = String::new();
    for statement in code.split_inclusive(';') {
        let flat = statement.split_whitespace().collect::<Vec<_>>().join(" ");
        match flat.rsplit_once("use ").filter(|(_, tree)| is_own(tree)) {
            Some((_, tree)) => expand(tree.trim_end_matches(';'), &mut paths),
            None => rest.push_str(statement),
        }
    }
    for start in ["crate::", "super::"] {
        for (at, _) in rest.match_indices(start) {
            let inside = rest[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric());
            let end = rest[at..].find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
            let path = &rest[at..end.map_or(rest.len(), |end| at + end)];
            if !inside && !rest[..at].ends_with("super::") && !rest[..at].ends_with('_') {
                paths.push(path.trim_end_matches(':').to_owned());
            }
        }
    }
    paths
}

fn is_own(tree: &str) -> bool {
    ["crate::", "self::", "super::"].iter().any(|start| tree.starts_with(start))
}

/// The path from the crate's root.
fn absolute(module: &str, path: &str) -> Vec<String> {
    let mut parts = path.split("::").map(str::trim).peekable();
    let mut base: Vec<&str> = module.split("::").collect();
    match parts.peek() {
        Some(&"crate") => {
            base.clear();
            parts.next();
        }
        Some(&"self") => {
            parts.next();
        }
        _ => {}
    }
    while parts.peek() == Some(&"super") {
        base.pop();
        parts.next();
    }
    base.into_iter().chain(parts).map(str::to_owned).collect()
}

fn imports() -> Imports {
    let mut files = BTreeMap::new();
    modules(&root().join("core/api/src"), "", &mut files);
    let tables = files.remove("lib").unwrap();
    files.insert("api".to_owned(), tables);
    modules(&root().join("core/src"), "", &mut files);
    assert!(files.len() > 200, "looked elsewhere");
    let mut imports = Imports::new();
    for (module, text) in &files {
        let targets = imports.entry(module.clone()).or_default();
        for path in paths(&code(text)) {
            let parts = absolute(module, &path);
            let target = (1..=parts.len()).rev().map(|n| parts[..n].join("::"));
            let target = target.into_iter().find(|target| files.contains_key(target));
            targets.extend(target.filter(|target| target != module));
        }
    }
    imports
}

fn layer(module: &str) -> usize {
    let within = |room: &str| module == room || module.starts_with(&format!("{room}::"));
    let rows = LAYERS.iter().enumerate();
    let known = rows.flat_map(|(row, rooms)| rooms.iter().map(move |room| (room.len(), row, room)));
    let found = known.filter(|(_, _, room)| within(room)).max();
    found
        .unwrap_or_else(|| panic!("{module} stands in no room: put it into one, or add the room"))
        .1
}

#[test]
fn no_room_uses_one_above_it() {
    let upwards: Vec<_> = imports()
        .into_iter()
        .flat_map(|(from, targets)| targets.into_iter().map(move |to| (from.clone(), to)))
        .filter(|(from, to)| layer(to) > layer(from))
        .map(|(from, to)| format!("{from} -> {to}"))
        .collect();
    assert!(upwards.is_empty(), "arrows upwards:\n  {}", upwards.join("\n  "));
}

#[test]
fn circles_of_files_are_small() {
    let imports = imports();
    let large: Vec<_> =
        circles(&imports).into_iter().filter(|circle| circle.len() > CIRCLE_MAX).collect();
    assert!(large.is_empty(), "circles of more than {CIRCLE_MAX} files: {large:#?}");
}

/// The groups of files that reach each other.
fn circles(imports: &Imports) -> Vec<Vec<&str>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|from| (from.as_str(), reachable(imports, from))).collect();
    let mut circles = BTreeSet::new();
    for (from, targets) in &reach {
        let circle = targets.iter().filter(|to| reach[*to].contains(from));
        let circle: BTreeSet<&str> = circle.copied().chain([*from]).collect();
        circles.insert(circle.into_iter().collect::<Vec<_>>());
    }
    circles.into_iter().collect()
}

fn reachable<'a>(imports: &'a Imports, from: &str) -> BTreeSet<&'a str> {
    let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(module) = next.pop() {
        for target in imports.get(module).into_iter().flatten() {
            if seen.insert(target.as_str()) {
                next.push(target);
            }
        }
    }
    seen
}

#[test]
fn the_reader_finds_what_it_must() {
    let code = code(
        "use crate::platform::{db, error::{Code, Result}};\nuse super::row as r;\n\
         fn a() { crate::api::find() } // crate::never::seen\n#[cfg(test)]\nmod tests { use crate::x; }",
    );
    let mut found: Vec<_> =
        paths(&code).iter().map(|path| absolute("trading::orders", path).join("::")).collect();
    found.sort();
    let expected = [
        "api::find",
        "platform::db",
        "platform::error::Code",
        "platform::error::Result",
        "trading::row",
    ];
    assert_eq!(found, expected);
    assert_eq!(layer("trading::catalogue::load"), layer("policies::runtime"));
    assert!(layer("trading::catalogue") < layer("tenancy::snapshot"));
    let ring: Imports = [("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")]
        .map(|(from, to)| (from.to_owned(), BTreeSet::from([to.to_owned()])))
        .into();
    assert!(circles(&ring).contains(&vec!["a", "b", "c"]));
}
