use std::fs;

use super::folder::ABANDONED;
use super::format::{CHUNK_BYTES, HEADER_BYTES, SEAL_BYTES};
use super::*;
use rampart_types::UserKey;

struct TestStore {
    store: DocumentStore,
    clock: Clock,
    personal_key: PersonalDataKey,
}

impl TestStore {
    fn new(name: &str) -> Self {
        let clock = Clock::system();
        let folder = format!("rampart-store-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        let _ = fs::remove_dir_all(&folder);
        let personal_key = Self::personal_key(&clock);
        let available = IntGauge::new("available", "1 while it can be written to").unwrap();
        Self { store: DocumentStore::in_folder(folder, available), clock, personal_key }
    }

    fn personal_key(clock: &Clock) -> PersonalDataKey {
        let (client, user) = (clock.uuid().unwrap().into(), clock.uuid().unwrap().into());
        PersonalDataKey::generate(clock, UserKey { client, user }).unwrap()
    }

    async fn put(&self, object: &[u8]) -> StoredObject {
        let mut writer = self.store.create(&self.clock).unwrap();
        for chunk in object.chunks(1_000) {
            writer.push(&self.clock, chunk).unwrap();
        }
        writer.finish(&self.clock).unwrap();
        let header = DocumentStore::header(&self.clock, &self.personal_key, &writer).unwrap();
        self.store.store(self.personal_key.owner().client, writer, header).await.unwrap()
    }

    async fn get(&self, key: &PersonalDataKey, id: Uuid) -> Result<Vec<u8>> {
        self.store.get(id).await?.open(key)
    }

    fn folder(&self) -> &Folder {
        let Backend::Folder(folder) = &self.store.0 else { panic!("it is a folder") };
        folder
    }

    fn files(&self) -> usize {
        fs::read_dir(self.folder().path()).unwrap().count()
    }
}

impl Drop for TestStore {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.folder().path());
    }
}

#[tokio::test]
async fn an_object_of_any_size_reads_back() {
    let context = TestStore::new("whole");
    for size in [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES] {
        let object: Vec<u8> = (0..size).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let stored = context.put(&object).await;
        assert!(context.get(&context.personal_key, stored.id()).await.unwrap() == object, "{size}");
        let other = TestStore::personal_key(&context.clock);
        assert!(context.get(&other, stored.id()).await.is_err(), "another user's key");
        stored.retain();
    }
}

#[tokio::test]
async fn an_object_that_was_altered_cut_or_renamed_does_not_open() {
    let context = TestStore::new("altered");
    let (stored, other) =
        (context.put(&[7; 2 * CHUNK_BYTES + 9]).await, context.put(&[8; 10]).await);
    let path = context.folder().file(stored.id());
    let whole = fs::read(&path).unwrap();
    assert!(!whole.windows(16).any(|run| run == [7; 16]), "in clear");
    let sealed = CHUNK_BYTES + SEAL_BYTES;
    for length in
        [0, HEADER_BYTES, HEADER_BYTES + sealed, HEADER_BYTES + 2 * sealed, whole.len() - 1]
    {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(context.get(&context.personal_key, stored.id()).await.is_err(), "cut to {length}");
    }
    for at in [0, HEADER_BYTES, whole.len() - 1] {
        let mut altered = whole.clone();
        altered[at] ^= 1;
        fs::write(&path, &altered).unwrap();
        assert!(context.get(&context.personal_key, stored.id()).await.is_err(), "altered at {at}");
    }
    fs::write(context.folder().file(other.id()), &whole).unwrap();
    assert!(context.get(&context.personal_key, other.id()).await.is_err(), "under another name");
}

#[tokio::test]
async fn an_unretained_object_leaves_no_file() {
    let context = TestStore::new("dropped");
    drop(context.put(b"image").await);
    let mut writer = context.store.create(&context.clock).unwrap();
    writer.push(&context.clock, &[1; 3 * CHUNK_BYTES]).unwrap();
    drop(writer);
    assert_eq!(context.files(), 0);
    context.put(b"image").await.retain();
    assert_eq!(context.files(), 1);
}

#[tokio::test]
async fn only_abandoned_files_are_swept() {
    let context = TestStore::new("swept");
    let (stored, writer) =
        (context.put(b"image").await, context.store.create(&context.clock).unwrap());
    let now = context.clock.now();
    context.store.sweep(now).await.unwrap();
    assert_eq!(context.files(), 2);
    context.store.sweep(now + 2 * ABANDONED).await.unwrap();
    assert_eq!(context.files(), 1);
    assert!(context.get(&context.personal_key, stored.id()).await.is_ok());
    drop(writer);
}
