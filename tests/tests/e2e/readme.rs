//! The README's page for a partner's developer: exactly its lines, against `rampart demo`, with
//! exactly the credentials that it prints.

use std::fs;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use rampart_tests::caller::Protocol;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::Folder;
use rampart_tests::guests;
use rampart_tests::process::{Process, binary};
use rampart_tests::repository::root;
use serde_json::{Value, json};

/// The section of the README that is walked.
const SECTION: &str = "## A user, an order, a webhook";

#[tokio::test]
async fn a_developer_walks_the_readme() {
    let folder = Folder::make();
    let demo = Process::spawn(demo(&folder));
    let exports = exports(&demo).await;
    for protocol in [Protocol::Http1, Protocol::Http2] {
        walk(&folder, &exports, protocol).await;
    }
}

#[tokio::test]
async fn a_demo_whose_usual_ports_are_taken_is_administered_with_its_settings() {
    // When this fails, somebody else has it.
    let _taken = TcpListener::bind("127.0.0.1:9443");
    let folder = Folder::make();
    let mut command = demo(&folder);
    command.env_remove("RAMPART__ADMIN__LISTEN");
    let demo = Process::spawn(command);
    exports(&demo).await;
    let mut show = Command::new(binary());
    show.args(["partner", "show", "demo", "--config"]).arg(folder.path().join("rampart.toml"));
    let show = Process::spawn(show);
    let status = show.ended_within(SOON).await;
    assert!(status.success(), "{:?} {:?}", show.out(), show.err());
}

#[tokio::test]
async fn a_demo_takes_the_environment_but_for_what_it_has_of_its_own() {
    let folder = Folder::make();
    let mut command = demo(&folder);
    for (name, value) in [
        ("OPS__LISTEN", "127.0.0.2:0"),
        ("EDGE__LISTEN", "127.0.0.3:0"),
        ("ADMIN__TOKEN", "of-the-\"shell\""),
        ("DATABASE__URL", "postgres://nobody@127.0.0.1:1/nothing"),
        ("EDGE__PUBLIC_URL", "https://shop.example"),
        ("DOCUMENTS__S3_URL", "s3://nobodys"),
        ("POLICY__REQUIRE_SIGNATURE", "true"),
    ] {
        command.env(format!("RAMPART__{name}"), value);
    }
    let demo = Process::spawn(command);
    let exports = exports(&demo).await;
    assert!(exports.contains("BASE='https://127.0.0.3:"), "{exports}");
    assert!(exports.contains("ADMIN_TOKEN='of-the-\"shell\"'"), "{exports}");
    demo.prints("curl http://127.0.0.2:").await;
    let settings = fs::read_to_string(folder.path().join("rampart.toml")).unwrap();
    assert!(settings.contains(r#"token = "of-the-\"shell\"""#), "{settings}");
}

#[tokio::test]
async fn a_demo_names_a_setting_that_there_is_not() {
    let folder = Folder::make();
    let mut command = demo(&folder);
    command.env("RAMPART__OPS__LISTENS", "x");
    let demo = Process::spawn(command);
    assert!(!demo.ended_within(SOON).await.success());
    let err = demo.err();
    assert!(err.iter().any(|line| line.contains("there is no setting 'listens'")), "{err:?}");
}

/// The `export` lines with which the demo ends what it prints, once it serves.
pub(crate) async fn exports(demo: &Process) -> String {
    until("the demo serves", SOON * 2, async || {
        assert!(demo.status().is_none(), "{:?} {:?}", demo.out(), demo.err());
        let lines = demo.out();
        // The last line of what it prints.
        lines.iter().find(|line| line.contains("partner show"))?;
        let exports = lines.into_iter().filter(|line| line.starts_with("export "));
        Some(exports.collect::<Vec<_>>().join("\n"))
    })
    .await
}

/// One walk. Afterwards the receiver has been told of everything in it.
async fn walk(folder: &Folder, exports: &str, protocol: Protocol) {
    // HTTP/2 is what curl asks for over TLS unless it is told otherwise.
    let (option, version) = match protocol {
        Protocol::Http1 => ("http1.1", "1.1"),
        Protocol::Http2 => ("", "2"),
    };
    // curl reads it before its arguments; what it says on standard error is the version it spoke.
    let settings = format!("{option}\nwrite-out = \"%{{stderr}}version %{{http_version}}\\n\"\n");
    fs::write(folder.path().join(".curlrc"), settings).unwrap();
    let mut bash = Command::new("bash");
    bash.current_dir(folder.path()).env("CURL_HOME", folder.path());
    bash.args(["-euo", "pipefail", "-c", &format!("{exports}\n{}", lines())]);
    let bash = Process::spawn(bash);
    let status = bash.ended_within(SOON * 2).await;
    let (out, err) = (bash.out(), bash.err());
    assert!(status.success(), "{protocol:?}: {out:?}\n{err:?}");

    let out = out.join("\n");
    assert!(out.contains("[]"), "something is left to verify: {out}");
    let order = fs::read_to_string(folder.path().join("order.json")).unwrap();
    let order: Value = serde_json::from_str(&order).unwrap();
    assert_eq!(order["status"], "completed");
    for told in
        ["user.created", "identifier.linked", "user.verified", "order.paid", "order.completed"]
    {
        assert!(out.contains(&json!([true, told]).to_string()), "{told} was not received: {out}");
    }
    let spoken = |version: &str| {
        let wanted = format!("version {version}");
        err.iter().filter(|line| **line == wanted).count()
    };
    assert!(spoken(version) >= 10, "{protocol:?}: {err:?}");
    assert!(protocol == Protocol::Http2 || spoken("2") == 0, "{err:?}");
}

/// The section's lines for the shell.
fn lines() -> String {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let section = readme.split(SECTION).nth(1).expect("the README has the section");
    let lines = section.split("```bash\n").nth(1).and_then(|rest| rest.split("```").next());
    lines.expect("the section has lines").to_owned()
}

/// The demo, whose state is in this folder.
pub(crate) fn demo(folder: &Folder) -> Command {
    let mut command = Command::new(binary());
    command.arg("demo").arg("--state").arg(folder.path());
    command.arg("--guests").arg(guests::folder());
    // The usual ports may be those of another demo that starts meanwhile.
    for listener in ["EDGE", "ADMIN", "OPS", "CONNECTORS"] {
        command.env(format!("RAMPART__{listener}__LISTEN"), "127.0.0.1:0");
    }
    command.stdin(Stdio::null());
    command
}
