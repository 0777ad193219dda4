//! Handing the listening sockets to a new process, so that not one connection is refused while
//! it takes over.
//!
//! The new process (`rampart serve --upgrade`) is ready to serve before it asks: it listens on
//! `edge.upgrade_socket`. The old one, told by SIGQUIT, connects, sends its sockets (`SCM_RIGHTS`)
//! and drains only when the new one says that it accepts. Should anything fail, the old one goes
//! on as if nothing had happened.

use std::fs;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// How long each side waits for the other.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause between two attempts to find the other.
const RETRY: Duration = Duration::from_millis(50);
/// Attempts within [`PATIENCE`].
const ATTEMPTS: u32 = 1_200;
/// Most sockets handed over at once.
const SOCKETS_MAX: usize = 32;
/// Most bytes of their names, one a line.
const NAMES_BYTES_MAX: usize = 4 * 1024;
/// What the new process says when it accepts.
const ACCEPTING: &[u8] = b"accepting\n";

/// A listening socket and the address it was configured with.
pub(crate) type Named = (String, TcpListener);

/// Further handles of `sockets`.
///
/// # Errors
/// When there are no file descriptors left.
pub(crate) fn copies(sockets: &[Named]) -> io::Result<Vec<Named>> {
    sockets.iter().map(|(name, socket)| Ok((name.clone(), socket.try_clone()?))).collect()
}

/// The new process' side, waiting for the old one.
#[derive(Debug)]
pub(crate) struct Heir(UnixStream);

/// Waits until the old process has sent its sockets. Blocks.
///
/// # Errors
/// When none came in time, or the folder of `path` is not private.
pub(crate) fn inherit(path: &Path) -> io::Result<(Heir, Vec<Named>)> {
    private_folder(path)?;
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    let stream = attempt(|| listener.accept().map(|(stream, _)| stream));
    // The next upgrade makes its own; a file that stays behind does no harm.
    let _ = fs::remove_file(path);
    let stream = stream?;
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let sockets = receive(&stream)?;
    Ok((Heir(stream), sockets))
}

impl Heir {
    /// Tells the old process that it may go.
    ///
    /// # Errors
    /// When it is gone already.
    pub(crate) fn accepting(mut self) -> io::Result<()> {
        self.0.write_all(ACCEPTING)
    }
}

/// Sends `sockets` to the process that waits at `path`, and returns when it accepts. Blocks.
///
/// # Errors
/// When there is none, or it gave up; the sockets are then still ours alone.
pub(crate) fn hand_over(path: &Path, sockets: &[Named]) -> io::Result<()> {
    private_folder(path)?;
    let mut stream = attempt(|| UnixStream::connect(path))?;
    send(&stream, sockets)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut answer = [0; ACCEPTING.len()];
    stream.read_exact(&mut answer)?;
    if answer == *ACCEPTING { Ok(()) } else { Err(ErrorKind::InvalidData.into()) }
}

/// Whoever can write to the folder could take the sockets: it must be ours alone.
fn private_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.ok_or_else(|| io::Error::other("edge.upgrade_socket names no folder"))?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    if fs::metadata(folder)?.permissions().mode() & 0o077 != 0 {
        let why = format!("'{}' must be accessible to its owner alone", folder.display());
        return Err(io::Error::other(why));
    }
    Ok(())
}

/// Tries until the other side is there.
#[expect(clippy::disallowed_methods, reason = "a thread of its own, which serves nobody, polls")]
fn attempt<T>(mut try_once: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut last = io::Error::from(ErrorKind::TimedOut);
    for _ in 0..ATTEMPTS {
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

fn send(stream: &UnixStream, sockets: &[Named]) -> io::Result<()> {
    let names: Vec<&str> = sockets.iter().map(|(name, _)| name.as_str()).collect();
    let names = names.join("\n");
    if sockets.len() > SOCKETS_MAX || names.len() > NAMES_BYTES_MAX {
        return Err(io::Error::other("more than 32 listeners"));
    }
    let fds: Vec<BorrowedFd<'_>> = sockets.iter().map(|(_, socket)| socket.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(io::Error::other("the listeners do not fit into one message"));
    }
    let data = [IoSlice::new(names.as_bytes())];
    let sent = sendmsg(stream, &data, &mut control, SendFlags::NOSIGNAL)?;
    if sent == names.len() { Ok(()) } else { Err(ErrorKind::WriteZero.into()) }
}

fn receive(stream: &UnixStream) -> io::Result<Vec<Named>> {
    let mut names = [0; NAMES_BYTES_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut data = [IoSliceMut::new(&mut names)];
    let read = recvmsg(stream, &mut data, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let fds: Vec<OwnedFd> = control
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        })
        .flatten()
        .collect();
    let names = std::str::from_utf8(&names[..read.bytes])
        .map_err(|_| io::Error::from(ErrorKind::InvalidData))?;
    let names: Vec<&str> = names.lines().collect();
    if names.len() != fds.len() {
        return Err(io::Error::other("names and listeners do not match"));
    }
    Ok(names.into_iter().map(str::to_owned).zip(fds.into_iter().map(TcpListener::from)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket_path(name: &str) -> std::path::PathBuf {
        let id = rampart_core::platform::clock::Clock::system().uuid().unwrap();
        std::env::temp_dir().join(format!("rampart-upgrade-{id}")).join(name)
    }

    #[test]
    fn sockets_keep_listening_through_a_change_of_owner() {
        let path = socket_path("upgrade.sock");
        let old = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = old.local_addr().unwrap();
        let waiting = std::thread::spawn({
            let path = path.clone();
            move || {
                let (heir, sockets) = inherit(&path).unwrap();
                heir.accepting().unwrap();
                sockets
            }
        });
        hand_over(&path, &[("edge=127.0.0.1:0".to_owned(), old)]).unwrap();
        let sockets = waiting.join().unwrap();
        assert_eq!(sockets[0].0, "edge=127.0.0.1:0");
        assert_eq!(sockets[0].1.local_addr().unwrap(), address);
        let client = std::net::TcpStream::connect(address).unwrap();
        assert_eq!(sockets[0].1.accept().unwrap().1, client.local_addr().unwrap());
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn a_folder_that_others_may_enter_is_refused() {
        let path = socket_path("upgrade.sock");
        let folder = path.parent().unwrap();
        fs::create_dir(folder).unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
        let error = hand_over(&path, &[]).unwrap_err();
        assert!(error.to_string().contains("owner alone"), "{error}");
        fs::remove_dir(folder).unwrap();
    }
}
