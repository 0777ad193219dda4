//! Instructions of a request, counted by valgrind: the one figure that another load on the machine
//! does not move. System calls are no part of it.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use bytes::Bytes;
use rampart_tests::caller::{Caller, Protocol};
use rampart_tests::edge::Edge;

use crate::environment::{Database, Environment, FIRST_ORDER};
use crate::load_client::{each, request};
use crate::paths::{CATALOGUE, PRICES, QUOTE};
use crate::peers;
use crate::side::credential;

/// Requests before the counting starts: caches are filled, code is paged in.
const WARM: usize = 300;
/// Requests that are counted.
const COUNTED: usize = 1_000;

/// Prints the instructions of a request on some paths, and what the peer takes.
pub(crate) fn count(environment: &Environment, database: &Database) {
    let counts = environment.folder.join("instructions");
    let _ = fs::remove_dir_all(&counts);
    fs::create_dir(&counts).unwrap();
    println!("\ninstructions a request, under valgrind (profiles in {})", counts.display());
    let edge = start(environment, database, &counts);
    let made = &database.plain;
    let key = |made: &serde_json::Value| format!("x-api-key: {}", made["apiKey"].as_str().unwrap());
    let token = environment.runtime.block_on(async {
        let caller = Caller::new(edge.address, Protocol::Http1, made.clone());
        credential(&caller.authenticated().await)
    });
    let read = format!("GET {CATALOGUE}");
    let order = format!("GET /api/v2/buy/orders/{FIRST_ORDER}");
    let asked = [
        ("a", "catalogue", request(&read, &[&key(made)], "")),
        ("a2", "catalogue with a policy", request(&read, &[&key(&database.ruled)], "")),
        ("a3", "prices", request(&format!("GET {PRICES}"), &[&key(made)], "")),
        ("b", "order read", request(&order, &[&token], "")),
        ("c", "quote", request("POST /api/v1/buy/quote", &[&key(made)], QUOTE)),
        (
            "c2",
            "quote with a policy",
            request("POST /api/v1/buy/quote", &[&key(&database.ruled)], QUOTE),
        ),
    ];
    let body = environment.runtime.block_on(each(edge.address, 1, vec![asked[0].2.clone()])).0;
    let body = body.into_iter().next().expect("one answer").ok().body;
    for (path, what, request) in asked {
        let counted = counted(environment, edge.process.id(), edge.address, &request, &counts);
        println!("{path:<3} {what:<32} {counted:>9}");
    }
    let mut command = Command::new("valgrind");
    command.args(arguments(&counts)).arg("nginx").args(["-g", "master_process off;"]);
    let (nginx, _) = peers::nginx_under(environment, &body, command);
    let read = request("GET /", &[], "");
    let counted = counted(environment, nginx.process(), nginx.address, &read, &counts);
    println!("    {:<32} {counted:>9}", "nginx, fixed body");
}

fn arguments(counts: &Path) -> [String; 3] {
    let out = format!("--callgrind-out-file={}/callgrind.%p", counts.display());
    ["--tool=callgrind".to_owned(), "--instr-atstart=no".to_owned(), out]
}

fn start(environment: &Environment, database: &Database, counts: &Path) -> Edge {
    let mut setup = database.setup();
    let arguments = arguments(counts);
    let mut command = vec!["valgrind"];
    command.extend(arguments.iter().map(String::as_str));
    setup.under(&command);
    setup.set("edge.threads", "1");
    // Valgrind's own address space is small.
    setup.set("policy.live_max", "1");
    setup.set("policy.memories_max", "2");
    environment.runtime.block_on(Edge::of(setup))
}

/// Instructions of one of many requests over one connection.
fn counted(
    environment: &Environment,
    process: u32,
    address: SocketAddr,
    request: &Bytes,
    counts: &Path,
) -> u64 {
    let ask =
        |count| environment.runtime.block_on(each(address, 1, vec![request.clone(); count])).0;
    ask(WARM).into_iter().for_each(|answer| drop(answer.ok()));
    let before = dumps(counts);
    control(process, "--instr=on");
    ask(COUNTED);
    control(process, "--instr=off");
    control(process, "--dump");
    let new = dumps(counts).into_iter().filter(|dump| !before.contains(dump));
    let totals = new.map(|dump| {
        let text = fs::read_to_string(&dump).unwrap();
        let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
        total.and_then(|total| total.trim().parse::<u64>().ok()).unwrap_or(0)
    });
    totals.sum::<u64>() / u64::try_from(COUNTED).unwrap()
}

fn dumps(counts: &Path) -> Vec<PathBuf> {
    fs::read_dir(counts).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn control(process: u32, what: &str) {
    let process = process.to_string();
    let done = Command::new("callgrind_control").args([what, &process]).output().unwrap();
    assert!(done.status.success(), "callgrind_control {what}: {done:?}");
}
