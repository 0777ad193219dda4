use super::*;
use crate::platform::crypto::DataKey;
use rampart_types::{ClientId, UserId};

struct Ground {
    store: Documents,
    clock: Clock,
    vault: PersonalDataKey,
}

impl Ground {
    fn new(name: &str) -> Self {
        let clock = Clock::system();
        let folder = format!("rampart-store-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        let _ = fs::remove_dir_all(&folder);
        let vault = Self::vault(&clock);
        Self { store: Documents { folder }, clock, vault }
    }

    fn vault(clock: &Clock) -> PersonalDataKey {
        let (client, user) = (clock.uuid().unwrap(), clock.uuid().unwrap());
        let key = DataKey::random(clock).unwrap();
        PersonalDataKey::with_key(key, ClientId::from(client), UserId::from(user))
    }

    fn put(&self, object: &[u8]) -> Kept {
        let mut part = self.store.begin(&self.clock).unwrap();
        for chunk in object.chunks(1_000) {
            part.push(&self.clock, chunk).unwrap();
        }
        part.finish(&self.clock).unwrap();
        let head = Documents::head(&self.clock, &self.vault, &part).unwrap();
        self.store.keep(part, &head).unwrap()
    }

    fn files(&self) -> usize {
        fs::read_dir(&self.store.folder).unwrap().count()
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.store.folder);
    }
}

#[test]
fn an_object_comes_back_whole_whatever_its_size() {
    let ground = Ground::new("whole");
    for size in [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES] {
        let object: Vec<u8> = (0..size).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let kept = ground.put(&object);
        assert!(ground.store.get(&ground.vault, kept.id()).unwrap() == object, "{size}");
        let other = Ground::vault(&ground.clock);
        assert!(ground.store.get(&other, kept.id()).is_err(), "another user's key");
        kept.settle();
    }
}

#[test]
fn an_object_that_was_altered_cut_or_renamed_does_not_open() {
    let ground = Ground::new("altered");
    let (kept, other) = (ground.put(&[7; 2 * PIECE_BYTES + 9]), ground.put(&[8; 10]));
    let path = ground.store.path(kept.id());
    let whole = fs::read(&path).unwrap();
    assert!(!whole.windows(16).any(|run| run == [7; 16]), "in clear");
    let sealed = PIECE_BYTES + SEAL_BYTES;
    for length in [0, HEAD_BYTES, HEAD_BYTES + sealed, HEAD_BYTES + 2 * sealed, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(ground.store.get(&ground.vault, kept.id()).is_err(), "cut to {length}");
    }
    for at in [0, HEAD_BYTES, whole.len() - 1] {
        let mut altered = whole.clone();
        altered[at] ^= 1;
        fs::write(&path, &altered).unwrap();
        assert!(ground.store.get(&ground.vault, kept.id()).is_err(), "altered at {at}");
    }
    fs::write(ground.store.path(other.id()), &whole).unwrap();
    assert!(ground.store.get(&ground.vault, other.id()).is_err(), "under another name");
}

#[test]
fn what_is_not_settled_leaves_nothing() {
    let ground = Ground::new("dropped");
    drop(ground.put(b"image"));
    let mut part = ground.store.begin(&ground.clock).unwrap();
    part.push(&ground.clock, &[1; 3 * PIECE_BYTES]).unwrap();
    drop(part);
    assert_eq!(ground.files(), 0);
    ground.put(b"image").settle();
    assert_eq!(ground.files(), 1);
}

#[test]
fn only_files_that_nobody_writes_any_more_are_swept() {
    let ground = Ground::new("swept");
    let (kept, part) = (ground.put(b"image"), ground.store.begin(&ground.clock).unwrap());
    let now = ground.clock.now();
    ground.store.sweep(now).unwrap();
    assert_eq!(ground.files(), 2);
    ground.store.sweep(now + 2 * ABANDONED).unwrap();
    assert_eq!(ground.files(), 1);
    assert!(ground.store.get(&ground.vault, kept.id()).is_ok());
    drop(part);
}
