//! HTTP/2 by hand: frames that cost the sender little and the receiver much, and frames that are
//! not allowed. Those that no honest client sends end their connection; the others cost nobody
//! anything, memory included.

mod frames;

use std::fs;
use std::time::Duration;

use rampart_tests::campaign::{Report, Scale};
use rampart_tests::wire::connect;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use self::frames::{Flood, PREFACE, floods};
use crate::target::Target;
use crate::verdict::{Verdict, judged};

/// Time in which a connection must end, or the flood is over.
const FLOOD_MAX: Duration = Duration::from_secs(5);
/// Time for which answers are left unread.
const UNREAD_MAX: Duration = Duration::from_secs(2);
/// Most memory that the edge may have more after all floods than before.
const GROWTH_KIB_MAX: u64 = 64 * 1024;

pub(crate) async fn frames(scale: Scale) -> Report {
    let target = Target::start().await;
    let floods = floods(&target.edge.address.to_string());
    let connections = scale.of(1, 6);
    let before = resident_kib(&target);
    judged(scale, &target.neighbour, async |verdict: &mut Verdict| {
        for flood in &floods {
            for _ in 0..connections {
                let ended = run(&target, flood).await;
                verdict.note(flood.must_end && !ended, || {
                    format!("the connection goes on after {}", flood.name)
                });
            }
        }
        let growth = resident_kib(&target).saturating_sub(before);
        verdict.note(growth > GROWTH_KIB_MAX, || format!("{growth} KiB of memory"));
    })
    .await
}

/// Sends the flood; `true` if the edge ended the connection.
async fn run(target: &Target, flood: &Flood) -> bool {
    let stream = connect(target.edge.address, "h2").await.unwrap();
    let (mut from, mut to) = tokio::io::split(stream);
    let sending = async {
        to.write_all(PREFACE).await?;
        to.write_all(&flood.start).await?;
        for number in 0..flood.count {
            to.write_all(&(flood.frames)(number)).await?;
        }
        to.flush().await
    };
    let reading = async {
        let mut bytes = [0; 16 * 1024];
        while from.read(&mut bytes).await.is_ok_and(|count| count > 0) {}
    };
    // A receiver that does not answer what is left unread stops the sender: that is no harm either.
    if flood.reads {
        let mut reading = std::pin::pin!(reading);
        let both = async {
            tokio::select! {
                sent = sending => if flood.must_end || sent.is_err() { reading.await },
                () = &mut reading => {}
            }
        };
        return timeout(FLOOD_MAX, both).await.is_ok();
    }
    timeout(UNREAD_MAX, sending).await.is_ok_and(|sent| sent.is_err())
}

/// Resident memory of the edge.
fn resident_kib(target: &Target) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", target.edge.process.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
