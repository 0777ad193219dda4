//! Pingora hands its sockets over, but stops then whether anybody took them or not; here the old
//! process goes on serving until the new one is ready, however long that takes, and one of them alone
//! accepts at any time. Connections that come in between wait in the sockets, so that none is refused.
//!
//! ```text
//! new (rampart serve --upgrade)                      old
//! waits at edge.upgrade_socket ◀──── sockets ─────── told by SIGQUIT
//! starts                                             serves
//! has started ───────────────────── ready ─────────▶ accepts no more
//! may accept ◀───────────────────── accept ───────── waits five seconds at most
//! accepts ───────────────────────── taken ─────────▶ finishes what is in flight
//! ```
//! The last three go over a second socket beside the first. Should the new process fail before it is
//! ready, the old one goes on as if nothing had happened; should it fail before it has taken the
//! sockets, the old one accepts again, and a new one that is only late is told so; should the old one
//! be gone, the new one accepts.

mod folder;

use std::fs;
use std::io::{self, ErrorKind, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{IntoRawFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pingora_core::server::Fds;
use rustix::cmsg_space;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

pub(crate) use self::folder::check_private;
use self::folder::make_private;

/// Pause between two attempts to find the other.
const RETRY: Duration = Duration::from_millis(50);
/// Attempts within a minute, and those of Pingora, which take six seconds each.
const ATTEMPTS: u32 = 1_200;
const TRANSFERS: u32 = 10;
/// Most sockets, and bytes of their names, that Pingora hands over.
const SOCKETS_MAX: usize = 32;
const NAMES_BYTES_MAX: usize = 2 * 1024;
/// Sent by the new process when it has started.
const READY: &[u8] = b"ready\n";
/// Sent by the old process when it accepts no more.
const ACCEPT: &[u8] = b"accept\n";
/// Sent by the new process when it is about to accept.
const TAKEN: &[u8] = b"taken\n";
/// Sent by the old process when it accepts again.
const WITHDRAWN: &[u8] = b"withdrawn\n";

/// The old process, waiting for the new one.
#[derive(Debug)]
pub(super) struct UpgradePeer(UnixStream);

/// Waits until the old process has sent its sockets. Blocks.
///
/// # Errors
/// When none came in time, or the folder of `path` is not private.
pub(super) fn inherit(path: &Path) -> io::Result<(UpgradePeer, Fds)> {
    make_private(path)?;
    // Pingora panics where it cannot bind. Beside its place: there the old process might find this
    // socket and send its own to nobody.
    remove(path)?;
    let probe = path.with_added_extension("probe");
    drop(bind(&probe)?);
    remove(&probe)?;
    let mut fds = Fds::new();
    attempt(TRANSFERS, || fds.get_from_sock(name(path)?).map_err(io::Error::from))
        .map_err(untold)?;
    let peer = attempt(ATTEMPTS, || UnixStream::connect(answers_at(path)))?;
    Ok((UpgradePeer(peer), fds))
}

/// The reason nobody came to Pingora's socket, which says only that its wait was over.
fn untold(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::WouldBlock => {
            io::Error::other("within a minute SIGQUIT told no running process to hand them over")
        }
        _ => error,
    }
}

impl UpgradePeer {
    /// Tells the old process that we are ready, and returns when we alone are to accept: when it says
    /// so, or is gone. Blocks.
    ///
    /// # Errors
    /// When it says anything else, or has accepted again because we were late.
    pub(super) fn take_over(mut self) -> io::Result<()> {
        if say(&mut self.0, READY)? { self.take() } else { Ok(()) }
    }

    /// Takes the sockets once the old process gives them up.
    fn take(mut self) -> io::Result<()> {
        if !hear(&mut self.0, ACCEPT)? || say(&mut self.0, TAKEN)? {
            return Ok(());
        }
        // It listens no more: it has withdrawn, or is gone.
        if hear(&mut self.0, WITHDRAWN)? {
            return Err(io::Error::other("it has waited long enough and accepts again"));
        }
        Ok(())
    }
}

/// Says a word; `false` when the other process is gone.
fn say(stream: &mut UnixStream, word: &[u8]) -> io::Result<bool> {
    unless_gone(stream.write_all(word))
}

/// Waits for a word; `false` when the other process is gone.
fn hear(stream: &mut UnixStream, word: &[u8]) -> io::Result<bool> {
    let mut said = vec![0; word.len()];
    let heard = unless_gone(stream.read_exact(&mut said))?;
    if heard && said != word { Err(ErrorKind::InvalidData.into()) } else { Ok(heard) }
}

fn unless_gone(done: io::Result<()>) -> io::Result<bool> {
    let gone = [ErrorKind::UnexpectedEof, ErrorKind::BrokenPipe, ErrorKind::ConnectionReset];
    match done {
        Err(error) if !gone.contains(&error.kind()) => Err(error),
        done => Ok(done.is_ok()),
    }
}

/// The new process, ready to accept and waiting for us.
#[derive(Debug)]
pub(super) struct UpgradeHeir(UnixStream);

impl UpgradeHeir {
    /// Tells it that it alone accepts, and returns when it does. Blocks for `time` at most.
    ///
    /// # Errors
    /// When it is gone, or late: it does not accept any more then.
    pub(super) fn accept(mut self, time: Duration) -> io::Result<()> {
        self.0.set_read_timeout(Some(time))?;
        let told = say(&mut self.0, ACCEPT);
        let taken = told.and_then(|told| Ok(told && hear(&mut self.0, TAKEN)?));
        if matches!(taken, Ok(true)) {
            return Ok(());
        }
        // The kernel decides between a deadline and a word that comes with it: once this side is shut
        // the word cannot be said any more, and what was said before is still heard.
        self.0.shutdown(Shutdown::Read)?;
        if matches!(hear(&mut self.0, TAKEN), Ok(true)) {
            return Ok(());
        }
        // Who is gone need not know.
        let _ = say(&mut self.0, WITHDRAWN);
        let why = if matches!(taken, Ok(false)) { "it has ended" } else { "it is late" };
        Err(io::Error::other(why))
    }
}

/// The sockets once more: Pingora closes its own when it accepts no more.
#[derive(Debug)]
pub(super) struct SocketCopies(Vec<(String, OwnedFd)>);

impl SocketCopies {
    /// Copies them by sending them to ourselves: the table holds mere numbers, of which nobody else
    /// can make a socket safely.
    fn of(fds: &Fds, path: &Path) -> io::Result<Self> {
        let names = fds.serialize().0;
        let listener = bind(path)?;
        let sent = fds.send_to_sock(name(path)?).map_err(io::Error::from);
        let received = sent.and_then(|_| listener.accept());
        // A file that stays behind does no harm.
        let _ = fs::remove_file(path);
        let (stream, _) = received?;
        let mut room = [MaybeUninit::uninit(); cmsg_space!(ScmRights(SOCKETS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut room);
        let mut text = [0; NAMES_BYTES_MAX];
        let mut parts = [IoSliceMut::new(&mut text)];
        recvmsg(&stream, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
        let mut sockets = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                sockets.extend(received);
            }
        }
        if sockets.len() != names.len() {
            return Err(io::Error::other("the listeners cannot be copied"));
        }
        Ok(Self(names.into_iter().zip(sockets).collect()))
    }

    /// Puts them in the place of those that are closed.
    pub(super) fn restore(self, fds: &mut Fds) {
        for (name, socket) in self.0 {
            fds.add(name, socket.into_raw_fd());
        }
    }
}

/// Sends `fds` to the process that waits at `path`, and returns when it has started, with copies of
/// the sockets in case it fails then. Blocks.
///
/// # Errors
/// When there is none, or it gave up; the sockets are then still ours alone.
pub(super) fn hand_over(path: &Path, fds: &Fds) -> io::Result<(UpgradeHeir, SocketCopies)> {
    make_private(path)?;
    let names = fds.serialize().0;
    let bytes: usize = names.iter().map(|name| name.len() + 1).sum();
    if names.len() > SOCKETS_MAX || bytes > NAMES_BYTES_MAX {
        return Err(io::Error::other("more than 32 listeners"));
    }
    let copies = SocketCopies::of(fds, &path.with_added_extension("copies"))?;
    let answers = bind(&answers_at(path))?;
    let taken = attempt(TRANSFERS, || fds.send_to_sock(name(path)?).map_err(io::Error::from));
    let peer = taken.and_then(|_| attempt(ATTEMPTS, || answers.accept()));
    // The next upgrade makes its own; a file that stays behind does no harm.
    let _ = fs::remove_file(answers_at(path));
    let mut peer = peer?.0;
    peer.set_nonblocking(false)?;
    match hear(&mut peer, READY)? {
        true => Ok((UpgradeHeir(peer), copies)),
        false => Err(ErrorKind::UnexpectedEof.into()),
    }
}

fn answers_at(path: &Path) -> PathBuf {
    path.with_added_extension("accepting")
}

fn name(path: &Path) -> io::Result<&str> {
    path.to_str().ok_or_else(|| io::Error::other("edge.upgrade_socket is not UTF-8"))
}

/// Removes what a former process left at `path`, if it left anything.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Listens at `path`, in the place of what a former process left there.
fn bind(path: &Path) -> io::Result<UnixListener> {
    remove(path)?;
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Tries until the other side is there.
#[expect(clippy::disallowed_methods, reason = "a thread of its own, which serves nobody, polls")]
fn attempt<T>(times: u32, mut try_once: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut last = io::Error::from(ErrorKind::TimedOut);
    for _ in 0..times {
        match try_once() {
            Ok(found) => return Ok(found),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
                    last = error;
                    std::thread::sleep(RETRY);
                }
                _ => return Err(error),
            },
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener};
    use std::os::fd::IntoRawFd as _;
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::mpsc::sync_channel;

    use pingora_core::protocols::SocketDigest;

    use super::*;

    /// Time for a new process that is there.
    const SOON: Duration = Duration::from_secs(5);

    fn socket_path(name: &str) -> PathBuf {
        let id = rampart_core::platform::clock::Clock::system().uuid().unwrap();
        std::env::temp_dir().join(format!("rampart-upgrade-{id}")).join(name)
    }

    /// A table with one listening socket, and its address.
    fn table() -> (Fds, SocketAddr) {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let mut fds = Fds::new();
        fds.add("edge=127.0.0.1:0".to_owned(), socket.into_raw_fd());
        (fds, address)
    }

    #[test]
    fn sockets_keep_listening_through_a_change_of_owner() {
        let path = socket_path("upgrade.sock");
        let (fds, address) = table();
        let (ready, is_ready) = sync_channel(0);
        let new = std::thread::spawn({
            let path = path.clone();
            move || {
                let (peer, fds) = inherit(&path).unwrap();
                is_ready.recv().unwrap();
                peer.take_over().unwrap();
                fds
            }
        });
        let old = std::thread::spawn({
            let path = path.clone();
            move || hand_over(&path, &fds).unwrap()
        });
        // Waits until the new process has the sockets.
        ready.send(()).unwrap();
        let (heir, copies) = old.join().unwrap();
        assert!(!new.is_finished(), "the new process accepts only when it is told to");
        heir.accept(SOON).unwrap();
        let fds = new.join().unwrap();
        let digest = SocketDigest::from_raw_fd(*fds.get("edge=127.0.0.1:0").unwrap());
        assert_eq!(digest.local_addr().unwrap().as_inet(), Some(&address));
        assert!(std::net::TcpStream::connect(address).is_ok());
        let mut again = Fds::new();
        copies.restore(&mut again);
        let digest = SocketDigest::from_raw_fd(*again.get("edge=127.0.0.1:0").unwrap());
        assert_eq!(digest.local_addr().unwrap().as_inet(), Some(&address));
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn a_new_process_that_ends_or_is_late_does_not_accept() {
        let pair = || {
            let (old, new) = UnixStream::pair().unwrap();
            (UpgradeHeir(old), UpgradePeer(new))
        };
        let (heir, peer) = pair();
        drop(peer);
        assert_eq!(heir.accept(SOON).unwrap_err().to_string(), "it has ended");

        let (heir, peer) = pair();
        let error = heir.accept(Duration::from_millis(1)).unwrap_err();
        assert_eq!(error.to_string(), "it is late");
        let error = peer.take().unwrap_err();
        assert!(error.to_string().contains("accepts again"), "{error}");

        let (heir, mut peer) = pair();
        assert!(say(&mut peer.0, TAKEN).unwrap());
        heir.accept(Duration::from_millis(1)).unwrap();
    }

    #[test]
    fn the_old_process_goes_on_when_the_new_one_fails_and_the_new_one_when_the_old_is_gone() {
        let path = socket_path("upgrade.sock");
        let inheriting = |then: fn(UpgradePeer)| {
            let path = path.clone();
            std::thread::spawn(move || then(inherit(&path).unwrap().0))
        };
        let failing = inheriting(drop);
        let error = hand_over(&path, &table().0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        failing.join().unwrap();

        let taking = inheriting(|peer| peer.take_over().unwrap());
        drop(hand_over(&path, &table().0).unwrap());
        taking.join().unwrap();
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn a_wait_for_nobody_names_the_signal() {
        let over = untold(io::Error::from(rustix::io::Errno::AGAIN)).to_string();
        assert!(over.contains("SIGQUIT") && !over.contains("os error"), "{over}");
        assert_eq!(untold(ErrorKind::NotFound.into()).kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_folder_that_others_may_enter_is_refused() {
        let path = socket_path("upgrade.sock");
        let folder = path.parent().unwrap();
        fs::create_dir(folder).unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
        let error = hand_over(&path, &Fds::new()).unwrap_err();
        assert!(error.to_string().contains("owner alone"), "{error}");
        fs::remove_dir(folder).unwrap();
    }
}
