//! The files of artifacts: where they are, who may read them, and when they go.

use std::fs;
use std::path::{Path, PathBuf};

use callboard_domain::Refusal;
use callboard_domain::linked_task::{Claim, Ended};
use callboard_store::{
    Artifact, ArtifactKey, ArtifactReader, LinkKey, NewArtifact, Store, StoreError, TaskRow,
};
use callboard_store_sqlite::SqliteStore;
use callboard_store_testkit::block_on;
use callboard_store_testkit::chat_world::file;
use callboard_store_testkit::world::{Workspace, World, at, refusal};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::contention::{poll, take_write_lock};
use crate::opening::place;

/// A store on a file with one claimed task.
struct Desk {
    _folder: TempDir,
    path: PathBuf,
    world: World<SqliteStore>,
    workspace: Workspace,
    chat: LinkKey,
    row: TaskRow,
    claim: Claim,
}

impl Desk {
    fn new() -> Self {
        let (folder, path) = place();
        let world = World::new(SqliteStore::open(&path).unwrap());
        block_on(async {
            let workspace = world.workspace().await;
            let chat = world.chat(&workspace, "Tax").await;
            let row = world.assign(&workspace, &[chat], "Sum it up").await;
            let (row, claim) = world.claimed(chat, &row, 0).await;
            Self {
                _folder: folder,
                path,
                world,
                workspace,
                chat,
                row,
                claim,
            }
        })
    }

    fn upload(&self, content: &[u8]) -> Result<(Artifact, bool), StoreError> {
        block_on(
            self.world
                .upload(self.chat, &self.row, self.sums(content), 1),
        )
    }

    fn sums(&self, content: &[u8]) -> NewArtifact {
        file(self.claim, "sums", content)
    }

    /// The key of the artifact that [`Self::upload`] makes.
    fn key(&self) -> ArtifactKey {
        ArtifactKey {
            reader: ArtifactReader::Owner(self.workspace.owner_id),
            task_id: self.row.task_id,
            claim_id: self.claim.id,
            artifact_id: "sums".to_owned(),
        }
    }

    fn read(&self) -> Result<Option<Vec<u8>>, StoreError> {
        let found = block_on(self.world.store.artifact(self.key()))?;
        Ok(found.map(|(_, bytes)| bytes))
    }

    fn folder(&self) -> PathBuf {
        self.path.with_file_name("artifacts")
    }

    fn files(&self) -> Vec<PathBuf> {
        files(&self.folder())
    }
}

/// The files of a folder, by name, without those of folders in it; none when there is no such
/// folder.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.is_file());
    paths.sort();
    paths
}

#[test]
fn an_artifact_is_one_file_that_outlives_a_restart() {
    let desk = Desk::new();
    assert!(!desk.folder().exists(), "made with the first file");
    let (artifact, replayed) = desk.upload(b"1, 2").unwrap();
    assert!(!replayed);
    assert_eq!(desk.upload(b"1, 2").unwrap(), (artifact.clone(), true));
    let [only] = &desk.files()[..] else {
        panic!("one file: {:?}", desk.files());
    };
    assert_eq!(fs::read(only).unwrap(), b"1, 2");
    let key = desk.key();
    drop(desk.world);
    let store = SqliteStore::open(&desk.path).unwrap();
    let read = block_on(store.artifact(key)).unwrap();
    assert_eq!(read, Some((artifact, b"1, 2".to_vec())));
}

#[cfg(unix)]
#[test]
fn artifacts_are_for_the_user_of_the_hub_alone() {
    use std::os::unix::fs::PermissionsExt;
    let desk = Desk::new();
    desk.upload(b"1, 2").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&desk.folder()), 0o700);
    assert_eq!(mode(&desk.files()[0]), 0o600);
}

#[test]
fn a_refused_upload_leaves_no_file() {
    let desk = Desk::new();
    let mut stale = desk.sums(b"1, 2");
    stale.claim_id = callboard_domain::ClaimId::UNKNOWN;
    let refused = block_on(desk.world.upload(desk.chat, &desk.row, stale, 1));
    assert_eq!(refusal(refused), Refusal::SubmitStale);
    assert!(!desk.folder().exists(), "nothing was even written");
    desk.upload(b"1, 2").unwrap();
    assert_eq!(refusal(desk.upload(b"3")), Refusal::ArtifactDiffers);
    assert_eq!(desk.files().len(), 1);
    assert_eq!(desk.read().unwrap().unwrap(), b"1, 2");
}

#[test]
fn an_upload_that_a_cancel_overtakes_leaves_no_file() {
    let desk = Desk::new();
    let (store, other) = (&desk.world.store, Connection::open(&desk.path).unwrap());
    take_write_lock(&other);
    let cancel = store.cancel_task(desk.workspace.owner_id, desk.row.task_id, at(1));
    let mut cancel = Box::pin(cancel);
    assert!(poll(&mut cancel).is_pending());
    let upload = desk
        .world
        .upload(desk.chat, &desk.row, desk.sums(b"1, 2"), 1);
    let mut upload = Box::pin(upload);
    assert!(poll(&mut upload).is_pending(), "nothing refused it so far");
    other.execute_batch("ROLLBACK").unwrap();
    block_on(cancel).unwrap();
    assert_eq!(
        refusal(block_on(upload)),
        Refusal::SubmitOver(Ended::Cancelled)
    );
    assert_eq!(desk.files().len(), 0, "written, and removed");
    assert!(desk.folder().exists());
}

#[test]
fn an_uploader_who_leaves_leaves_the_file_with_its_row() {
    let desk = Desk::new();
    let other = Connection::open(&desk.path).unwrap();
    take_write_lock(&other);
    let upload = desk
        .world
        .upload(desk.chat, &desk.row, desk.sums(b"1, 2"), 1);
    let mut upload = Box::pin(upload);
    assert!(poll(&mut upload).is_pending());
    drop(upload);
    other.execute_batch("ROLLBACK").unwrap();
    let key = desk.key();
    drop(desk.world);
    let store = SqliteStore::open(&desk.path).unwrap();
    let (_, bytes) = block_on(store.artifact(key)).unwrap().unwrap();
    assert_eq!(bytes, b"1, 2");
}

#[test]
fn files_that_no_row_names_are_put_aside_at_the_next_start() {
    let desk = Desk::new();
    desk.upload(b"1, 2").unwrap();
    let (folder, kept) = (desk.folder(), desk.files());
    let path = desk.path.clone();
    drop(desk.world);
    let name = kept[0].file_name().unwrap().to_str().unwrap();
    let database = path.file_name().unwrap().to_str().unwrap();
    let half = format!("{database}-half");
    let unnamed = format!("{database}-{}", "ab".repeat(32));
    // Of another database in the same folder, and of somebody else.
    let others = [
        format!("other-{}", name.replace(database, "hub")),
        "notes.txt".to_owned(),
    ];
    for file in [&half, &unnamed, &others[0], &others[1]] {
        fs::write(folder.join(file), "left over").unwrap();
    }
    let second = path.with_file_name("second.sqlite3");
    drop(SqliteStore::open(&second).unwrap());
    assert_eq!(files(&folder).len(), 5, "a second database keeps out of it");
    drop(SqliteStore::open(&path).unwrap());
    let mut left = kept;
    left.extend(others.map(|file| folder.join(file)));
    left.sort();
    assert_eq!(files(&folder), left);
    let aside = folder.join("unnamed");
    assert_eq!(files(&aside), [aside.join(unnamed)], "the half one is gone");
}

#[test]
fn a_database_that_is_put_back_finds_its_files() {
    let desk = Desk::new();
    desk.upload(b"1, 2").unwrap();
    let (key, path) = (desk.key(), desk.path.clone());
    drop(desk.world);
    let kept = path.with_extension("kept");
    fs::rename(&path, &kept).unwrap();
    drop(SqliteStore::open(&path).unwrap());
    fs::rename(&kept, &path).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    let (_, bytes) = block_on(store.artifact(key)).unwrap().unwrap();
    assert_eq!(bytes, b"1, 2");
}

#[test]
fn a_missing_or_damaged_file_is_a_failure_that_tells_no_path() {
    let desk = Desk::new();
    desk.upload(b"1, 2").unwrap();
    let [file] = &desk.files()[..] else {
        panic!("one file");
    };
    let said = |desk: &Desk| {
        let failed = desk.read().unwrap_err();
        assert_eq!(failed.to_string(), "the store is unavailable");
        let StoreError::Unavailable(source) = failed else {
            panic!("{failed:?}");
        };
        source.to_string()
    };
    for damaged in ["1, 3", "1", "1, 2, 3"] {
        fs::write(file, damaged).unwrap();
        assert_eq!(said(&desk), "the stored file of an artifact is damaged");
    }
    fs::remove_file(file).unwrap();
    let missing = said(&desk);
    assert!(!missing.contains("artifacts"), "{missing}");
}

#[test]
fn a_folder_that_cannot_be_made_fails_the_upload_and_it_can_be_repeated() {
    let desk = Desk::new();
    fs::write(desk.folder(), "in the way").unwrap();
    let failed = desk.upload(b"1, 2").unwrap_err();
    assert!(matches!(failed, StoreError::Unavailable(_)), "{failed:?}");
    assert_eq!(desk.read().unwrap(), None);
    fs::remove_file(desk.folder()).unwrap();
    assert!(!desk.upload(b"1, 2").unwrap().1);
    assert_eq!(desk.read().unwrap().unwrap(), b"1, 2");
}

#[test]
fn a_repeated_upload_puts_back_a_file_that_is_gone_cut_short_or_damaged() {
    let desk = Desk::new();
    desk.upload(b"1, 2").unwrap();
    let [file] = &desk.files()[..] else {
        panic!("one file");
    };
    for spoil in [
        |file: &Path| fs::remove_file(file).unwrap(),
        |file: &Path| fs::write(file, "1").unwrap(),
        |file: &Path| fs::write(file, "1, 3").unwrap(),
    ] {
        spoil(file);
        assert!(desk.upload(b"1, 2").unwrap().1, "a replay all the same");
        assert_eq!(desk.read().unwrap().unwrap(), b"1, 2");
        assert_eq!(desk.files().len(), 1);
    }
}
