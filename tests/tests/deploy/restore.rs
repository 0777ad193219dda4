//! Backup and restore: the drill of `deploy/BACKUP.md`, over a Postgres of its own.

use std::process::Command;

use rampart_tests::process::binary;

use crate::{read, root};

/// Texts of the guide in the place of the drill's own folders, names and times.
const EXAMPLES: [(&str, &str); 13] = [
    (" --config rampart.toml", ""),
    ("rampart ", "operator "),
    ("psql --command=", "sql "),
    ("--username=postgres", "--username=rampart"),
    ("/backup/wal", "$wal"),
    ("/backup/base", "$state/base"),
    ("/backup/pgbackrest", "$wal"),
    ("/var/lib/postgresql/17/main", "$state/live"),
    ("/var/lib/postgresql/restored", "$state/restored"),
    ("/run/postgresql", "$state"),
    ("000000010000000000000002.00000028.backup", "$label"),
    ("2026-03-01 12:00:00+00", "$point"),
    ("POSITION:MAC", "$kept"),
];

/// A text with one blank between words, without quotes and the ends of broken lines.
fn words(text: &str) -> String {
    let text = text.replace("\\\n", " ").replace(['"', '\''], "");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Runs the drill with these arguments behind the program's path.
fn drill(arguments: &[&str]) {
    let mut drill = Command::new(root().join("deploy/restore-drill"));
    let drill = drill.arg(binary()).args(arguments).output().unwrap();
    let out = String::from_utf8_lossy(&drill.stdout);
    let err = String::from_utf8_lossy(&drill.stderr);
    assert!(drill.status.success(), "{out}\n{err}");
}

#[test]
fn a_point_in_time_is_restored() {
    drill(&[]);
}

#[test]
fn a_point_in_time_is_restored_with_pgbackrest() {
    drill(&["pgbackrest"]);
}

#[test]
fn the_drill_runs_every_command_of_the_guide() {
    let drill = words(&read("restore-drill").replace("$bin/", ""));
    let guide = read("BACKUP.md");
    // Every second part is a block; its first line says of what.
    let blocks = guide.split("```").skip(1).step_by(2);
    let lines = blocks.flat_map(|block| block.lines().skip(1));
    let lines: Vec<_> = lines.map(str::trim).filter(|line| !line.is_empty()).collect();
    assert!(lines.len() >= 16, "{lines:?}");
    for line in lines {
        let here = |line: String, (example, own): &(&str, &str)| line.replace(example, own);
        let own = words(&EXAMPLES.iter().fold(line.to_owned(), here));
        assert!(drill.contains(&own), "{line}: {own}");
    }
}
