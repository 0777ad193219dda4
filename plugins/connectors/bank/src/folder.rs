//! The folder that files pass through, and the proof that no file of transfers appears twice.
//!
//! | subfolder | files |
//! |---|---|
//! | `inbox` | statements that arrive; `taken` and `refused` are those that were read |
//! | `outbox` | finished pain.001 files: whoever brings them to the bank takes them away |
//! | `prepared` | a file before it is allowed to appear |
//! | `void` | empty marks: files of these names never appear |
//!
//! A file is prepared under a new name, then every transfer's checkpoint is given that name, then one
//! rename lets it appear. So a name that is in a checkpoint, and neither prepared nor void, has
//! appeared.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use ring::digest;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};

const SUBFOLDERS: [&str; 6] = ["inbox", "taken", "refused", "outbox", "prepared", "void"];
/// Most bytes of a name to which others are added: no file system takes more than 255.
const NAME_BYTES_MAX: usize = 200;

/// Name of a message: unique, and at most 35 characters, which is the bound of `MsgId`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String")]
pub(crate) struct MessageId(String);

impl MessageId {
    /// A new one, random.
    ///
    /// # Errors
    /// Without entropy.
    pub(crate) fn new() -> Result<Self, String> {
        random().map(|random| Self(format!("M{random}")))
    }

    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    fn file(&self) -> String {
        format!("{}.xml", self.0)
    }
}

impl TryFrom<String> for MessageId {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        // It becomes the name of a file.
        let is_plain =
            |digits: &str| digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_hexdigit());
        if text.strip_prefix('M').is_some_and(is_plain) {
            return Ok(Self(text));
        }
        Err("this is no name of a message")
    }
}

fn random() -> Result<String, String> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).map_err(|_| "there is no entropy".to_owned())?;
    Ok(hex::encode(bytes))
}

/// The folder, held by this process alone.
#[derive(Debug)]
pub(crate) struct Folder {
    root: PathBuf,
    id: String,
    _lock: File,
}

/// Checks that the folder is there and can be written; changes nothing that stays.
///
/// # Errors
/// One sentence.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let probe = root.join(format!(".check-{}", std::process::id()));
    let written = File::create_new(&probe).and_then(|_| fs::remove_file(&probe));
    written.map_err(|error| format!("folder: cannot write to {}: {error}", root.display()))
}

impl Folder {
    /// Opens the folder, which it makes if it is not there, and makes void what an earlier process
    /// had prepared.
    ///
    /// # Errors
    /// One sentence; among others when another process has it open.
    pub(crate) fn open(root: &Path) -> Result<Self, String> {
        let wrong = |what: &str, error: io::Error| format!("folder: cannot {what}: {error}");
        for name in SUBFOLDERS {
            let path = root.join(name);
            fs::create_dir_all(path).map_err(|error| wrong("make subfolders", error))?;
        }
        let mut options = OpenOptions::new();
        options.create(true).write(true).truncate(false);
        let lock = options.open(root.join("lock"));
        let lock = lock.map_err(|error| wrong("open its lock", error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err("folder: another process uses it".to_owned());
            }
            Err(TryLockError::Error(error)) => return Err(wrong("lock it", error)),
        }
        let id = identify(root)?;
        let folder = Self { root: root.to_owned(), id, _lock: lock };
        folder.void_prepared().map_err(|error| wrong("void what was prepared", error))?;
        Ok(folder)
    }

    /// Its own name, which checkpoints carry: only this folder knows what has appeared in it.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// A subfolder.
    pub(crate) fn path(&self, subfolder: &str) -> PathBuf {
        self.root.join(subfolder)
    }

    /// Writes a message that does not appear yet.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn prepare(&self, message: &MessageId, text: &str) -> io::Result<()> {
        write(&self.path("prepared"), &message.file(), text.as_bytes())
    }

    /// Lets a prepared message appear.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn publish(&self, message: &MessageId) -> io::Result<()> {
        let file = message.file();
        rename(&self.path("prepared").join(&file), &self.path("outbox").join(&file))
    }

    /// Keeps a prepared message from ever appearing.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn void(&self, message: &MessageId) -> io::Result<()> {
        self.void_file(&message.file())
    }

    /// Puts a file into the inbox, whole.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn receive(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        write(&self.path("inbox"), name, bytes)
    }

    /// True if a message whose name a checkpoint carries has appeared.
    ///
    /// # Errors
    /// When the disk cannot be read.
    pub(crate) fn has_appeared(&self, message: &MessageId) -> io::Result<bool> {
        let is_in = |subfolder| self.path(subfolder).join(message.file()).try_exists();
        Ok(!is_in("prepared")? && !is_in("void")?)
    }

    /// Puts a statement of the inbox away whose contents were read. Two of one name and other contents
    /// are both kept. `false` if another one has come under its name meanwhile: that one is in the
    /// inbox, under a name of its own.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn keep(&self, name: &OsStr, contents: &[u8]) -> io::Result<bool> {
        let (inbox, taken) = (self.path("inbox"), self.path("taken"));
        let kept = name_of(name, contents);
        // In the inbox, where the next process reads it, until it is known to be the one that was read.
        let held = inbox.join(&kept);
        rename(&inbox.join(name), &held)?;
        let found = fs::read(&held)?;
        if found == contents {
            rename(&held, &taken.join(&kept))?;
            return Ok(true);
        }
        rename(&held, &inbox.join(name_of(name, &found)))?;
        write(&taken, &kept, contents)?;
        Ok(false)
    }

    /// Puts a file of the inbox away that is no statement of the account. Two of one name and other
    /// contents are both kept.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn refuse(&self, name: &OsStr, contents: &[u8]) -> io::Result<()> {
        let kept = name_of(name, contents);
        rename(&self.path("inbox").join(name), &self.path("refused").join(kept))
    }

    fn void_prepared(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.path("prepared"))? {
            let entry = entry?;
            match entry.file_name().to_str() {
                Some(name) if !name.starts_with('.') => self.void_file(name)?,
                // A file that was never finished has no name that anybody knows.
                _ => fs::remove_file(entry.path())?,
            }
        }
        Ok(())
    }

    /// The mark comes first: a message that is not prepared any more is void.
    fn void_file(&self, name: &str) -> io::Result<()> {
        write(&self.path("void"), name, b"")?;
        fs::remove_file(self.path("prepared").join(name))?;
        sync(&self.path("prepared"))
    }
}

/// The name of a statement that others of its name do not have: its digest, and the end of the name.
fn name_of(name: &OsStr, contents: &[u8]) -> String {
    let digest = digest::digest(&digest::SHA256, contents);
    let name = name.to_string_lossy();
    let end = name.ceil_char_boundary(name.len().saturating_sub(NAME_BYTES_MAX));
    format!("{}-{}", hex::encode(&digest.as_ref()[..8]), &name[end..])
}

/// The folder's own name, made at its first use.
fn identify(root: &Path) -> Result<String, String> {
    let wrong = |error: io::Error| format!("folder: cannot use its file id: {error}");
    match fs::read_to_string(root.join("id")) {
        Ok(id) if !id.trim().is_empty() => Ok(id.trim().to_owned()),
        Ok(_) => Err("folder: its file id is empty".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let id = random()?;
            write(root, "id", id.as_bytes()).map_err(wrong)?;
            Ok(id)
        }
        Err(error) => Err(wrong(error)),
    }
}

/// Writes a file so that it is there whole or not at all.
fn write(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let unfinished = folder.join(format!(".{name}"));
    let mut file = File::create(&unfinished)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&unfinished, folder.join(name))?;
    sync(folder)
}

/// Moves a file to another subfolder, durably.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    [to, from].into_iter().filter_map(Path::parent).try_for_each(sync)
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    /// A folder that goes with the test.
    pub(crate) struct Place(pub(crate) PathBuf);

    impl Place {
        pub(crate) fn make() -> Self {
            let path = std::env::temp_dir().join(format!("rampart-bank-{}", random().unwrap()));
            fs::create_dir(&path).unwrap();
            Self(path)
        }

        pub(crate) fn names(&self, subfolder: &str) -> Vec<String> {
            let entries = fs::read_dir(self.0.join(subfolder)).unwrap();
            let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
            entries.map(|entry| name(entry).into_string().unwrap()).collect()
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_message_appears_once_or_never() {
        let place = Place::make();
        let folder = Folder::open(&place.0).unwrap();
        let (sent, dropped) = (MessageId::new().unwrap(), MessageId::new().unwrap());
        folder.prepare(&sent, "<a/>").unwrap();
        assert!(!folder.has_appeared(&sent).unwrap() && place.names("outbox").is_empty());
        folder.publish(&sent).unwrap();
        assert!(folder.has_appeared(&sent).unwrap());
        // The bank's program takes it away; it has appeared all the same.
        fs::remove_file(place.0.join("outbox").join(sent.file())).unwrap();
        assert!(folder.has_appeared(&sent).unwrap());
        folder.prepare(&dropped, "<b/>").unwrap();
        folder.void(&dropped).unwrap();
        assert!(!folder.has_appeared(&dropped).unwrap() && place.names("prepared").is_empty());
        assert!(folder.publish(&dropped).is_err());
    }

    #[test]
    fn two_files_of_one_name_are_both_kept() {
        let place = Place::make();
        let folder = Folder::open(&place.0).unwrap();
        for text in ["first", "second"] {
            folder.receive("a.xml", text.as_bytes()).unwrap();
            assert!(folder.keep("a.xml".as_ref(), text.as_bytes()).unwrap());
            let other = format!("no statement: {text}");
            folder.receive("a.xml", other.as_bytes()).unwrap();
            folder.refuse("a.xml".as_ref(), other.as_bytes()).unwrap();
        }
        for subfolder in ["taken", "refused"] {
            let kept = place.names(subfolder);
            let are_named = kept.iter().all(|name| name.ends_with("-a.xml"));
            assert!(kept.len() == 2 && are_named, "{subfolder}: {kept:?}");
        }
        assert!(place.names("inbox").is_empty());
    }

    #[test]
    fn a_file_of_any_name_is_put_away() {
        let place = Place::make();
        let folder = Folder::open(&place.0).unwrap();
        let (inbox, long) = (folder.path("inbox"), format!("{}.xml", "ä".repeat(125)));
        for name in [OsStr::new(&long), OsStr::from_bytes(b"Ums\xe4tze.xml")] {
            fs::write(inbox.join(name), "text").unwrap();
            assert!(folder.keep(name, b"text").unwrap());
            fs::write(inbox.join(name), "text").unwrap();
            folder.refuse(name, b"text").unwrap();
        }
        assert!(place.names("inbox").is_empty());
        for subfolder in ["taken", "refused"] {
            let kept = place.names(subfolder);
            let are_named = kept.iter().all(|name| name.ends_with(".xml"));
            assert!(kept.len() == 2 && are_named, "{subfolder}: {kept:?}");
        }
    }

    #[test]
    fn a_statement_that_replaces_one_that_is_read_is_not_put_away_with_it() {
        let place = Place::make();
        let folder = Folder::open(&place.0).unwrap();
        folder.receive("a.xml", b"second").unwrap();
        assert!(!folder.keep("a.xml".as_ref(), b"first").unwrap());
        let (came, kept) = (place.names("inbox").remove(0), place.names("taken").remove(0));
        assert_eq!(fs::read(place.0.join("inbox").join(&came)).unwrap(), b"second");
        assert_eq!(fs::read(place.0.join("taken").join(kept)).unwrap(), b"first");
        folder.receive("a.xml", b"third").unwrap();
        assert_eq!(place.names("inbox").len(), 2);
        assert!(folder.keep(came.as_ref(), b"second").unwrap());
        assert_eq!((place.names("inbox").len(), place.names("taken").len()), (1, 2));
    }

    #[test]
    fn the_next_process_makes_void_what_was_prepared() {
        let place = Place::make();
        let folder = Folder::open(&place.0).unwrap();
        let message = MessageId::new().unwrap();
        folder.prepare(&message, "<a/>").unwrap();
        fs::write(place.0.join("prepared/.unfinished.xml"), "<").unwrap();
        let id = folder.id().to_owned();
        assert!(Folder::open(&place.0).unwrap_err().contains("another process"));
        drop(folder);
        let next = Folder::open(&place.0).unwrap();
        assert_eq!(next.id(), id);
        assert!(!next.has_appeared(&message).unwrap() && place.names("prepared").is_empty());
        assert!(place.names("outbox").is_empty());
    }

    #[test]
    fn names_of_messages_lead_nowhere_else() {
        let message = MessageId::new().unwrap();
        assert!(message.as_str().len() <= 35);
        assert!(MessageId::try_from(message.as_str().to_owned()).is_ok());
        for text in ["", "M", "../../x", &format!("M{}", "/".repeat(32)), &"a".repeat(33)] {
            assert!(MessageId::try_from(text.to_owned()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_check_changes_nothing() {
        let place = Place::make();
        check(&place.0).unwrap();
        assert_eq!(fs::read_dir(&place.0).unwrap().count(), 0);
        assert!(check(&place.0.join("missing")).is_err());
    }
}
