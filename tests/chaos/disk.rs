//! A full disk under Postgres: what cannot be written is not acknowledged.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rampart_tests::campaign::{Report, Scale};
use rampart_tests::deadline::{SOON, until};
use rampart_tests::postgres_server::PostgresServer;

use crate::fleet::Fleet;
use rampart_tests::journal::Fault;

/// Size of the disk: a cluster, and some log.
const DISK: &str = "size=256m";
/// Confirms before the disk is full.
const APART: usize = 200;
/// Confirms that must be refused while it is.
const REFUSED: usize = 20;

/// A disk in memory. It goes when it is dropped.
struct Disk {
    place: PathBuf,
}

impl Disk {
    /// Mounts it; `None` for whoever may not.
    fn mount() -> Option<Self> {
        let place = std::env::temp_dir().join(format!("rampart-disk-{}", std::process::id()));
        fs::create_dir(&place).unwrap();
        let mut mount = Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", DISK, "rampart"]).arg(&place).output();
        if mounted.is_ok_and(|mounted| mounted.status.success()) {
            return Some(Self { place });
        }
        fs::remove_dir(&place).unwrap();
        None
    }

    fn ballast(&self) -> PathBuf {
        self.place.join("ballast")
    }

    /// Writes until nothing more fits.
    fn fill(&self) {
        fill(&self.ballast());
    }

    fn free(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }
}

fn fill(path: &Path) {
    let mut file = File::create(path).unwrap();
    for block in [vec![0; 1 << 20], vec![0; 1 << 12]] {
        while file.write_all(&block).is_ok() {}
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // What stays mounted is in memory, and named after this process.
        let _ = Command::new("umount").arg("-l").arg(&self.place).status();
        let _ = fs::remove_dir(&self.place);
    }
}

pub(crate) async fn full(scale: Scale) -> Report {
    let Some(disk) = Disk::mount() else {
        // Nothing else gives a server a disk of its own.
        return Report { cells: vec!["needs root".to_owned()], wrong: Vec::new() };
    };
    let postgres = PostgresServer::start_in(disk.place.join("state")).await;
    let fleet = Fleet::over(postgres, 2, |_| ()).await;
    let load = fleet.load();
    let mut fault = Fault { injected: 0, recovery: Duration::ZERO };
    for _ in 0..scale.of(1, 5) {
        load.reach(load.acknowledged() + APART).await;
        disk.fill();
        let before = load.refused();
        until("confirms are refused", SOON * 2, async || {
            (load.refused() >= before + REFUSED).then_some(())
        })
        .await;
        disk.free();
        // It may have ended by itself: a log that cannot be written is a reason to.
        fleet.postgres.kill();
        fleet.postgres.restart().await;
        fault.injected += 1;
        fault.recovery = fault.recovery.max(fleet.recovery(&load).await);
    }
    load.finish().await.reconcile(&fleet.pool().await, &fault).await
}
