//! Components of a few kilobytes that take a compiler minutes and gigabytes. Their author gets an
//! error within the time that the settings say, and can go on; the neighbour does not notice, and
//! has a component of its own examined meanwhile.

use std::fs;

use bytes::Bytes;
use http::Method;
use rampart_core::platform::clock::Clock;
use rampart_tests::campaign::{Report, Scale};
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::Edge;
use rampart_tests::guests::component;

use crate::target::Target;
use crate::verdict::{Verdict, judged};

const FEE: &str = "/admin/v1/partners/mallory/policies/fee";
const NEIGHBOURS_FEE: &str = "/admin/v1/partners/neighbour/policies/fee";
/// Longest compilation as the edge is set up here, in milliseconds.
const COMPILE_MS: u64 = 2_000;
/// Longest wait for the answer to an upload, in milliseconds: the compilation, and a busy machine.
const ANSWER_MS_MAX: u64 = 6 * COMPILE_MS;

/// Local variables, and loops that each of them is carried through: a value for each pair.
const LOCALS: u32 = 20_000;
const LOOPS: usize = 5_000;
/// Blocks within blocks.
const NESTED: usize = 200_000;
/// Targets of a table of jumps, and tables.
const TARGETS: u32 = 60_000;
const TABLES: usize = 12;
/// Functions, and additions in each.
const FUNCTIONS: usize = 4_000;
const ADDITIONS: usize = 80;

pub(crate) async fn compiled(scale: Scale) -> Report {
    let target =
        Target::with(|setup| _ = setup.set("policy.compile_timeout_ms", COMPILE_MS.to_string()))
            .await;
    let (mut stopped, mut longest) = (0, (0, Bytes::new()));
    let mut report = judged(scale, &target.neighbour, async |verdict: &mut Verdict| {
        for (name, bomb) in bombs() {
            let clock = Clock::system();
            let answer = target.edge.admin_bytes(Method::PUT, FEE, bomb.clone()).await;
            let took = clock.monotonic_ns() / 1_000_000;
            let bounds = ["not compiled within", "takes more than"];
            stopped += usize::from(bounds.iter().any(|bound| answer.text().contains(bound)));
            let status = answer.status();
            // 503: the machine was short of memory or busy, which says nothing of the component.
            let is_refusal = (400..500).contains(&status) || status == 503;
            let refused = is_refusal && took <= ANSWER_MS_MAX;
            verdict.note(!refused, || format!("{} for {name} after {took} ms", answer.status()));
            if took > longest.0 {
                longest = (took, bomb);
            }
        }
    })
    .await;
    report.require(stopped > 0, || "no compilation met its bound of time or memory".to_owned());
    others_are_examined(&target.edge, &longest.1).await;
    // Nothing of it is still under way.
    until("a sound component is taken again", SOON, async || {
        let answer = target.edge.admin_bytes(Method::PUT, FEE, component("tiered-fee")).await;
        (answer.status() == 200).then_some(())
    })
    .await;
    report
}

/// Requires that a sound component of the neighbour's is examined whole while this bomb compiles; on
/// a busy machine it has several attempts.
async fn others_are_examined(edge: &Edge, bomb: &Bytes) {
    until("a component is examined beside a bomb", SOON, async || {
        let clock = Clock::system();
        let exploding = async {
            edge.admin_bytes(Method::PUT, FEE, bomb.clone()).await;
            clock.monotonic_ns()
        };
        let examined = async {
            until("the bomb compiles", SOON, async || compiles(edge).then_some(())).await;
            let sound = component("tiered-fee");
            let answer = edge.admin_bytes(Method::PUT, NEIGHBOURS_FEE, sound).await;
            (answer.status(), clock.monotonic_ns())
        };
        let (exploded, (status, answered)) = tokio::join!(exploding, examined);
        (status == 200 && answered < exploded).then_some(())
    })
    .await;
}

/// True while a process that the edge has started runs: those are compilers.
fn compiles(edge: &Edge) -> bool {
    let threads = fs::read_dir(format!("/proc/{}/task", edge.process.id())).unwrap();
    threads.flatten().any(|thread| {
        let children = fs::read_to_string(thread.path().join("children"));
        children.is_ok_and(|children| !children.is_empty())
    })
}

fn bombs() -> [(&'static str, Bytes); 4] {
    [
        ("values carried through loops", of(&[carried()], LOCALS)),
        ("blocks within blocks", of(&[nested()], 0)),
        ("tables of jumps", of(&[jumps()], 0)),
        ("many functions", of(&vec![additions(); FUNCTIONS], 1)),
    ]
}

/// Adds to every variable within all loops.
fn carried() -> Vec<u8> {
    let mut code = [0x03, 0x40].repeat(LOOPS);
    for local in 0..LOCALS {
        // local.get, i32.const 1, i32.add, local.set
        code.extend([&[0x20][..], &leb(local), &[0x41, 1, 0x6a, 0x21], &leb(local)].concat());
    }
    // Again for as long as a variable is not zero.
    code.extend([0x20, 0, 0x0d, 0, 0x0b].repeat(LOOPS));
    code
}

fn nested() -> Vec<u8> {
    [[0x02, 0x40].repeat(NESTED), [0x0b].repeat(NESTED)].concat()
}

fn jumps() -> Vec<u8> {
    let table = [&[0x41, 0, 0x0e][..], &leb(TARGETS), &vec![0; TARGETS as usize + 1]].concat();
    // Each in a block of its own, which it leaves.
    let block = [&[0x02, 0x40][..], &table, &[0x0b]].concat();
    block.repeat(TABLES)
}

fn additions() -> Vec<u8> {
    [0x20, 0, 0x41, 1, 0x6a, 0x21, 0].repeat(ADDITIONS)
}

/// A component with a core module of functions with these bodies and so many local variables, and
/// nothing else.
fn of(bodies: &[Vec<u8>], locals: u32) -> Bytes {
    let count = leb(u32::try_from(bodies.len()).unwrap());
    // () -> ()
    let types = section(1, &[1, 0x60, 0, 0]);
    let functions = section(3, &[&count[..], &vec![0; bodies.len()]].concat());
    let function = |body: &Vec<u8>| {
        let locals = [&[1][..], &leb(locals), &[0x7f]].concat();
        sized(&[&locals[..], body, &[0x0b]].concat())
    };
    let code: Vec<u8> = bodies.iter().flat_map(function).collect();
    let code = section(10, &[&count[..], &code].concat());
    let module = [&b"\0asm\x01\0\0\0"[..], &types, &functions, &code].concat();
    [&b"\0asm\x0d\0\x01\0"[..], &section(1, &module)].concat().into()
}

/// A section of this number.
fn section(number: u8, content: &[u8]) -> Vec<u8> {
    [&[number][..], &sized(content)].concat()
}

/// Bytes behind their number.
fn sized(content: &[u8]) -> Vec<u8> {
    [&leb(u32::try_from(content.len()).unwrap())[..], content].concat()
}

/// A number in LEB128.
fn leb(mut number: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let [low, ..] = (number & 0x7f).to_le_bytes();
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}
