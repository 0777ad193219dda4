use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_blocks_its_thread_holds_up_no_other() {
    let (sender, receiver) = mpsc::sync_channel(1);
    let mut tasks = Tasks::default();
    tasks.spawn(async move { receiver.recv().unwrap() });
    tasks.spawn(async move { sender.send(()).unwrap() });
    tasks.ended().await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_panics_starts_again_until_it_is_stopped() {
    let (stop, stopped) = watch::channel(false);
    let (starts, failures) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let start = async || match starts.fetch_add(1, Ordering::Relaxed) {
        0 => panic!("once"),
        1 => (),
        _ => panic!("twice"),
    };
    let failed = || _ = failures.fetch_add(1, Ordering::Relaxed);
    restarted(stopped.clone(), start, failed).await;
    let counts = || (starts.load(Ordering::Relaxed), failures.load(Ordering::Relaxed));
    assert_eq!(counts(), (2, 1));
    stop.send_replace(true);
    restarted(stopped, start, failed).await;
    assert_eq!(counts(), (3, 2), "it is stopped");
}

#[tokio::test]
#[should_panic(expected = "a worker's")]
async fn a_panic_of_a_worker_is_noticed() {
    let mut tasks = Tasks::default();
    tasks.spawn(pending());
    tasks.spawn(async { panic!("a worker's") });
    tasks.ended().await;
}

#[tokio::test(start_paused = true)]
async fn all_start_again_after_a_panic_of_one() {
    let (_stop, stopped) = watch::channel(false);
    let (starts, failures) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let start = async || {
        let mut tasks = Tasks::default();
        if starts.fetch_add(1, Ordering::Relaxed) == 0 {
            tasks.spawn(pending());
            tasks.spawn(async { panic!("a worker's") });
        }
        tasks.ended().await;
    };
    restarted(stopped, start, || _ = failures.fetch_add(1, Ordering::Relaxed)).await;
    assert_eq!((starts.into_inner(), failures.into_inner()), (2, 1));
}
