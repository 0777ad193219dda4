//! Requests hidden in others: messages that two servers may read differently, with another request
//! behind them. Each is refused, the connection is closed, and what is behind it is not answered.
//! Messages that can be read in one way only are read so however their bytes are cut.

mod variants;

use rampart_tests::answer::Answer;
use rampart_tests::campaign::{Report, Scale};
use rampart_tests::wire::Wire;

use crate::target::Target;
use crate::verdict::{Verdict, judged};

/// Of so many places of a cut one is tried in the short form.
const SHORT_STEP: usize = 16;

/// Every variant of an ambiguous message.
pub(crate) async fn ambiguous(scale: Scale) -> Report {
    let target = Target::start().await;
    let variants = variants::all(&target.own());
    assert!(variants.len() >= 300, "{} variants", variants.len());
    judged(scale, &target.neighbour, async |verdict: &mut Verdict| {
        for bytes in &variants {
            let wrong = accepted(&target, &[bytes]).await;
            verdict.note(wrong.is_some(), || {
                format!("{wrong:?} for {:?}", String::from_utf8_lossy(bytes))
            });
        }
    })
    .await
}

/// Sends these pieces; what speaks for a server that was misled, if anything does.
async fn accepted(target: &Target, pieces: &[&[u8]]) -> Option<String> {
    let mut wire = Wire::open(target.edge.address).await;
    for piece in pieces {
        wire.send(piece).await;
    }
    let answer = wire.answer().await?;
    match answer.status() {
        400 | 408 | 413 | 414 | 431 => {}
        other => return Some(format!("status {other}")),
    }
    (!wire.is_closed().await).then(|| "another answer".to_owned())
}

/// A head and a body, cut in two at every byte.
pub(crate) async fn split(scale: Scale) -> Report {
    let target = Target::start().await;
    let own = target.own();
    let post = |framing: &str| format!("POST /api/v1/buy/quote HTTP/1.1\r\n{own}{framing}");
    let sound = [
        post("Content-Length: 2\r\n\r\n{}"),
        post("Transfer-Encoding: chunked\r\n\r\n1;a=b\r\n{\r\n1\r\n}\r\n0\r\nX-Trailer: y\r\n\r\n"),
    ];
    let ambiguous = post("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    let step = if scale.is_exact() { 1 } else { SHORT_STEP };
    judged(scale, &target.neighbour, async |verdict: &mut Verdict| {
        for message in sound.iter().map(String::as_bytes) {
            let whole = outcome(&exchange(&target, message, message.len()).await);
            for place in (1..message.len()).step_by(step) {
                let found = outcome(&exchange(&target, message, place).await);
                verdict
                    .note(found != whole, || format!("cut at {place}: {found:?}, not {whole:?}"));
            }
        }
        let message = ambiguous.as_bytes();
        for place in (1..message.len()).step_by(step) {
            let (head, rest) = message.split_at(place);
            let wrong = accepted(&target, &[head, rest]).await;
            verdict.note(wrong.is_some(), || format!("ambiguous, cut at {place}: {wrong:?}"));
        }
    })
    .await
}

/// The answers to a message cut there, and to one more behind it on the same connection.
async fn exchange(target: &Target, message: &[u8], place: usize) -> [Option<Answer>; 2] {
    let mut wire = Wire::open(target.edge.address).await;
    let (head, rest) = message.split_at(place);
    wire.send(head).await;
    let answer = wire.exchange(rest).await;
    let next = format!("GET /api/v1/prices HTTP/1.1\r\n{}\r\n", target.own());
    [answer, wire.exchange(next.as_bytes()).await]
}

/// Status and codes of each answer.
fn outcome(answers: &[Option<Answer>; 2]) -> [Option<(u16, Vec<String>)>; 2] {
    answers.each_ref().map(|answer| answer.as_ref().map(|answer| (answer.status(), answer.codes())))
}
