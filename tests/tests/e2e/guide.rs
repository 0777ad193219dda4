//! Writing a policy: the commands of `plugins/GUIDE.md` as they stand there, and every project that
//! `rampart policy new` can write.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rampart_tests::edge::{ADMIN_TOKEN, Edge, Setup};
use rampart_tests::guests::folder as guests;
use rampart_tests::process::binary;
use rampart_tests::repository::root;
use serde_json::Value;
use tokio::process::Command;

/// Longest that compiling and everything else may take, on a machine busy with other tests.
const PATIENCE: Duration = Duration::from_secs(300);

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// An author's machine: a folder of its own with `rampart` on the path.
struct Author(PathBuf);

impl Author {
    fn new() -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder =
            env::temp_dir().join(format!("rampart-author-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn folder(&self) -> &Path {
        &self.0
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Runs shell commands, each of which must do well for the next to run.
    #[expect(clippy::disallowed_methods, reason = "a shell needs the path of the machine")]
    async fn shell(&self, script: &str) -> Output {
        let programs = env::var("PATH").unwrap();
        let path = format!("{}:{programs}", binary().parent().unwrap().display());
        let mut shell = Command::new("/bin/sh");
        shell.args(["-euc", script]).current_dir(&self.0).env("PATH", path);
        // What `plugins/build` has compiled already serves here too.
        shell.env("CARGO_TARGET_DIR", guests().parent().unwrap().join("guests-target"));
        shell.stdin(Stdio::null()).kill_on_drop(true);
        let ended = tokio::time::timeout(PATIENCE, shell.output()).await;
        ended.expect("the commands end").unwrap()
    }

    /// The same; what was printed, when all went well.
    async fn done(&self, script: &str) -> String {
        let Output { status, stdout, stderr } = self.shell(script).await;
        let (out, err) = (String::from_utf8(stdout).unwrap(), String::from_utf8_lossy(&stderr));
        assert!(status.success(), "{script}\n{out}\n{err}");
        out
    }

    /// The same; the last line of standard error, when it ended with status 2.
    async fn refused(&self, script: &str) -> (String, String) {
        let Output { status, stdout, stderr } = self.shell(script).await;
        let (out, err) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
        assert_eq!(status.code(), Some(2), "{script}\n{out}\n{err}");
        (out, err.lines().last().unwrap_or_default().to_owned())
    }
}

impl Drop for Author {
    fn drop(&mut self) {
        // What stays in the folder for temporary files does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The shell commands of a section of the guide.
fn commands(section: &str) -> String {
    let guide = fs::read_to_string(root().join("plugins/GUIDE.md")).unwrap();
    let heading = format!("\n## {section}\n");
    let (_, section) = guide.split_once(&heading).expect("the guide has the section");
    let section = section.split("\n## ").next().unwrap();
    let blocks = section.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    let commands: String = blocks.collect();
    assert!(!commands.is_empty(), "the section has commands");
    commands
}

/// The partner's fees in the quotes that were printed, in order.
fn partner_fees(printed: &str) -> Vec<Value> {
    let quotes = printed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    quotes.filter(|quote| quote.is_object()).map(|quote| quote["partnerFee"].clone()).collect()
}

/// Time for a component with an engine of JavaScript, beside tests that have the processors as well.
fn patient(setup: &mut Setup) {
    setup.set("edge.request_timeout_seconds", "120");
}

/// Runs a section of the guide against an edge like the demo's; the fees of its quotes.
async fn follow(section: &str) -> Vec<Value> {
    let edge = Edge::with(patient).await;
    let partner = edge.partner("demo").await;
    let author = Author::new();
    let certificate = edge.setup().folder().join("cert.pem");
    author.write(
        "target/demo/rampart.toml",
        &format!("[admin]\nlisten = \"{}\"\ntoken = \"{ADMIN_TOKEN}\"\n", edge.admin),
    );
    author.write(
        "target/demo/env",
        &format!(
            "EDGE='{}'\nCERTIFICATE='{}'\nAPI_KEY='{}'\nCONFIG='{}'\n",
            edge.url(""),
            certificate.display(),
            partner.credential().1,
            author.folder().join("target/demo/rampart.toml").display(),
        ),
    );
    let script = commands("A local edge") + &commands(section);
    partner_fees(&author.done(&script).await)
}

#[tokio::test]
async fn the_guide_leads_from_nothing_to_a_changed_fee_in_rust() {
    let fees = follow("In Rust").await;
    assert_eq!(fees[1..], [1.25.into(), 2.into(), Value::from(1.25)], "{fees:?}");
    assert_ne!(fees[0], fees[1], "the fee was another before");
}

#[tokio::test]
async fn the_guide_leads_from_nothing_to_a_changed_fee_in_c() {
    let fees = follow("In C").await;
    assert_eq!(fees[1..], [1.25.into(), 2.into(), Value::from(1.25)], "{fees:?}");
    assert_ne!(fees[0], fees[1], "the fee was another before");
}

#[tokio::test]
async fn the_guide_leads_from_nothing_to_a_changed_fee_in_javascript() {
    let fees = follow("In JavaScript").await;
    assert_eq!(fees[1..], [1.25.into(), 2.into(), Value::from(1.25)], "{fees:?}");
    assert_ne!(fees[0], fees[1], "the fee was another before");
}

/// Limits of the component of a new project.
struct Limits {
    bytes: u64,
    fuel: u64,
    memory_bytes: u64,
}

/// Kinds of policies.
const KINDS: &[&str] = &["fee", "method-order", "signature"];

/// Makes, builds and checks a project of each of these kinds in this language.
async fn build_all(author: &Author, language: &str, kinds: &[&str], limits: Limits) {
    for kind in kinds {
        let name = format!("{language}-{kind}");
        let script = format!(
            "rampart policy new {name} --kind {kind} --lang {language} >&2
             rampart policy build {name} >&2
             rampart policy check {kind} {name}/{name}.wasm"
        );
        let report: Value = serde_json::from_str(&author.done(&script).await).unwrap();
        assert_eq!(report["about"]["name"], format!("example/{name}"));
        assert_eq!(report["about"]["version"], "1.0.0");
        let vectors = report["vectors"].as_array().unwrap();
        assert!(vectors.len() >= 3, "{report:#}");
        assert!(vectors.iter().all(|vector| vector["passed"] == true), "{report:#}");
        assert!(report["fuel"].as_u64().unwrap() < limits.fuel, "{report:#}");
        assert!(report["size"].as_u64().unwrap() < limits.bytes, "{report:#}");
        let memory = report["start"]["memoryBytes"].as_u64().unwrap();
        assert!(memory <= limits.memory_bytes, "{report:#}");
        assert!(!report["imports"].to_string().contains("wasi"), "{report:#}");
    }
}

#[tokio::test]
async fn every_new_project_builds_and_passes_its_vectors() {
    let author = Author::new();
    let compiled = || Limits { bytes: 65_536, fuel: 200_000, memory_bytes: 65_536 };
    let script = Limits { bytes: 1_200_000, fuel: 4_000_000, memory_bytes: 2 << 20 };
    // npm waits for its files, and cargo compiles with one processor. The guide does the same for a fee in
    // JavaScript, whose engine takes the longest to compile.
    tokio::join!(
        build_all(&author, "rust", KINDS, compiled()),
        build_all(&author, "c", KINDS, compiled()),
        build_all(&author, "javascript", &KINDS[1..], script),
    );
}

#[tokio::test]
async fn a_vector_that_is_answered_otherwise_is_shown_and_fails_the_check() {
    let author = Author::new();
    author.done("rampart policy new acme --kind fee --lang c; rampart policy build acme").await;
    let check = "rampart policy check fee acme/acme.wasm";
    let (printed, sentence) =
        author.refused(&format!("sed -i 's/everyone/nobody/' acme/vectors.json; {check}")).await;
    assert_eq!(sentence, "rampart: 2 vectors were answered otherwise than expected");
    let report: Value = serde_json::from_str(&printed).unwrap();
    let outcomes = report["vectors"].as_array().unwrap();
    assert_eq!(outcomes[0]["passed"], false);
    assert_eq!(outcomes[0]["expected"]["decision"]["rule"], "nobody");
    assert_eq!(outcomes[0]["answered"]["decision"]["rule"], "everyone");
    assert_eq!(outcomes[2]["passed"], true);

    let (_, sentence) = author.refused("rampart policy check signature acme/acme.wasm").await;
    assert_eq!(sentence, "rampart: the component exports fee, not exactly signature");
}

#[tokio::test]
async fn what_cannot_be_made_or_built_is_told_in_one_sentence() {
    let author = Author::new();
    author.done("mkdir taken empty; printf 'no module' >text.wasm").await;
    for (command, sentence) in [
        ("new taken --kind fee", "rampart: 'taken' cannot be made: File exists (os error 17)"),
        (
            "new Acme --kind fee",
            "rampart: 'Acme' is no name: small letters, digits and hyphens, a letter first",
        ),
        ("build empty", "rampart: 'empty' has no Cargo.toml, no policy.c and no policy.js"),
    ] {
        let (_, said) = author.refused(&format!("rampart policy {command}")).await;
        assert_eq!(said, sentence);
    }
    let (_, said) =
        author.refused("rampart policy build --module text.wasm --out policy.wasm").await;
    assert!(said.starts_with("rampart: not a WebAssembly module: "), "{said}");
}
