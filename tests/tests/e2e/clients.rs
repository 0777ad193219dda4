//! The README's purchase through the packed client libraries: what their generators make of the
//! OpenAPI document sends the right credentials, and reads every answer.

use std::process::Command;

use rampart_tests::deadline::SOON;
use rampart_tests::edge::Folder;
use rampart_tests::process::Process;
use rampart_tests::repository::root;

use crate::readme::{demo, exports};

/// Packs the libraries, and installs them as a partner would, without a network.
const INSTALL: &str = r#"
CARGO_TARGET_DIR=$PWD "$ROOT/deploy/clients"
"$ROOT/deploy/generators" python -m pip install --quiet --disable-pip-version-check --no-deps \
    --target python clients/python/*.whl
mkdir typescript && cp "$ROOT/tests/clients/purchase.ts" typescript
cd typescript
echo '{"private": true, "type": "module"}' >package.json
npm install --silent --offline --no-audit --no-fund ../clients/typescript/*.tgz
"$ROOT/deploy/generators" tsc --strict --target es2023 --module nodenext \
    --lib es2023,dom,dom.iterable purchase.ts
"#;
/// The purchases, with the demo's `export` lines in front.
const BUY: [&str; 2] = [
    r#"PYTHONPATH=python "$ROOT/deploy/generators" python "$ROOT/tests/clients/purchase.py""#,
    r#"NODE_EXTRA_CA_CERTS=$CURL_CA_BUNDLE "$ROOT/deploy/generators" node typescript/purchase.js"#,
];

/// Runs lines for the shell in the folder; gives what they print.
async fn run(folder: &Folder, lines: &str) -> Vec<String> {
    let mut bash = Command::new("bash");
    bash.current_dir(folder.path()).env("ROOT", root());
    bash.args(["-euo", "pipefail", "-c", lines]);
    let bash = Process::spawn(bash);
    let status = bash.ended_within(SOON * 4).await;
    assert!(status.success(), "{lines}: {:?}\n{:?}", bash.out(), bash.err());
    bash.out()
}

#[tokio::test]
async fn a_purchase_is_made_with_each_packed_client() {
    let (folder, state) = (Folder::make(), Folder::make());
    // The demo makes its cluster meanwhile.
    let demo = Process::spawn(demo(&state));
    run(&folder, INSTALL).await;
    let exports = exports(&demo).await;
    for line in BUY {
        let out = run(&folder, &format!("{exports}\n{line}")).await;
        assert_eq!(out.last().map(String::as_str), Some("completed"), "{line}: {out:?}");
    }
}
