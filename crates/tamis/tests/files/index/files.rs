//! Index files: replaced whole or not at all, and identified by their stamps.

use super::*;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};
use tamis::internals::file::FileLock;

/// An index file with one entry with this id.
fn write(path: &Path, id: &str) -> Result<FileIndex, Error> {
    let options = options(0.01);
    let mut builder = IndexBuilder::create(path, &options)?;
    builder.add(id, None, &numbered(&options, 0, 10))?;
    builder.finish()
}

fn names(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

#[test]
fn a_builder_that_does_not_finish_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    let options = options(0.01);
    let mut builder = IndexBuilder::create(&path, &options).unwrap();
    builder
        .add("new", None, &numbered(&options, 0, 10))
        .unwrap();
    drop(builder);
    assert!(names(dir.path()).is_empty());

    let old = write(&path, "old").unwrap();
    let mut builder = IndexBuilder::create(&path, &options).unwrap();
    // More than one write's worth.
    for entry in 0..3 {
        builder
            .add("new", None, &numbered(&options, entry, 700_000))
            .unwrap();
    }
    drop(builder);
    assert_eq!(names(dir.path()), ["index"]);
    assert!(FileIndex::open(&path).unwrap().to_bytes() == old.to_bytes());
}

#[test]
fn a_finished_one_replaces_the_old_one_under_its_lock() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    let old = write(&path, "old").unwrap();
    let lock = FileLock::acquire(&path).unwrap();
    let new = write(&path, "new").unwrap();
    drop(lock);
    assert_eq!(old.entry(0).id(), b"old", "who has it mapped keeps it");
    assert_eq!(new.entry(0).id(), b"new");
    assert_eq!(FileIndex::open(&path).unwrap().entry(0).id(), b"new");
    drop(FileLock::try_acquire(&path).unwrap());
    assert_eq!(names(dir.path()), ["index"]);

    let copy = dir.path().join("copy");
    new.save(&copy).unwrap();
    assert_eq!(fs::read(&copy).unwrap(), fs::read(&path).unwrap());
}

#[test]
fn large_files_are_written_in_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    let options = options(0.01);
    let mut file = IndexBuilder::create(&path, &options).unwrap();
    let mut memory = IndexBuilder::in_memory(&options);
    for (entry, keys) in [3u64, 900_000, 0, 40_000, 1_000_000, 1]
        .into_iter()
        .enumerate()
    {
        let filters = numbered(&options, entry as u64, keys);
        file.add("id", None, &filters).unwrap();
        memory.add("id", None, &filters).unwrap();
    }
    let (file, memory) = (file.finish().unwrap(), memory.finish().unwrap());
    assert!(file.to_bytes() == memory.to_bytes());
    assert!(fs::read(&path).unwrap() == memory.to_bytes());
    file.verify().unwrap();
}

#[test]
fn what_is_no_index_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    assert!(matches!(FileIndex::open(&path), Err(Error::Io { .. })));
    assert!(matches!(FileIndex::open(dir.path()), Err(Error::Io { .. })));
    for content in [&b""[..], b"short", &[0; 500]] {
        fs::write(&path, content).unwrap();
        let error = FileIndex::open(&path).unwrap_err();
        assert!(matches!(error, Error::CorruptIndex { .. }), "{error}");
    }
    let filter = tamis::Blocked::new(10, 0.01).unwrap();
    assert!(!FileIndex::is_index(&filter.to_bytes()));
    filter.save(&path).unwrap();
    assert!(FileIndex::open(&path).is_err());
    write(&path, "index").unwrap();
    assert!(FileIndex::is_index(&fs::read(&path).unwrap()));
    assert!(tamis::AnyFilter::load(&path).is_err());
}

#[test]
fn a_secret_kept_apart_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    let secret = SecretKey::new([7; 16]);
    let options = options(0.01).hasher(Hasher::keyed_apart(secret));
    let mut builder = IndexBuilder::create(&path, &options).unwrap();
    builder
        .add("e", None, &filters(&options, &[vec!["key"]]))
        .unwrap();
    builder.finish().unwrap();
    assert!(matches!(FileIndex::open(&path), Err(Error::KeyNeeded)));
    let wrong = SecretKey::new([8; 16]);
    assert!(matches!(
        FileIndex::open_keyed(&path, &wrong),
        Err(Error::WrongKey)
    ));
    let index = FileIndex::open_keyed(&path, &secret).unwrap();
    assert_eq!(index.candidates("key").len(), 1);
    let bytes = fs::read(&path).unwrap();
    assert!(
        !bytes.windows(16).any(|window| window == [7; 16]),
        "it leaked"
    );
    FileIndex::view_keyed(&bytes, &secret).unwrap();
}

#[test]
fn entries_of_an_unlike_index_are_not_copied() {
    let theirs = of_sizes(&options(0.01), &[5]);
    for (what, ours) in [
        ("rate", options(0.011)),
        ("hash", options(0.01).hasher(Hasher::seeded(1))),
        ("key specs", options(0.01).specs(["other"]).unwrap()),
        ("key specs", options(0.01).specs(["key", "other"]).unwrap()),
    ] {
        let mut builder = IndexBuilder::in_memory(&ours);
        let error = builder.copy(&theirs.entry(0)).unwrap_err();
        assert!(
            matches!(error, Error::Unlike { what: w, .. } if w == what),
            "{error}"
        );
        assert!(builder.is_empty());
        if what != "hash" {
            let filters = numbered(&options(0.01), 0, 5);
            let added = builder.add("e", None, &filters);
            assert_eq!(
                added.is_err(),
                ours.rate() != 0.01 || ours.spec_texts().len() > 1
            );
        }
    }
}

/// The stamp that an index would record for a file read now.
fn read_now(path: &Path) -> Stamp {
    let began = SystemTime::now();
    let before = Stamp::of(&fs::metadata(path).unwrap());
    let after = Stamp::of(&fs::metadata(path).unwrap());
    before.after_reading(&after, began)
}

fn now(path: &Path) -> Stamp {
    Stamp::of(&fs::metadata(path).unwrap())
}

/// Waits until the file system's clock has ticked, even a coarse one.
fn settle(path: &Path) {
    for _ in 0..300 {
        if !read_now(path).is_racy() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the file never settles");
}

#[test]
fn a_file_that_was_just_written_proves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    // On a busy machine, the reading may start too late.
    let was_just_written = (0..1000).any(|_| {
        fs::write(&path, "one").unwrap();
        let stamp = read_now(&path);
        assert!(stamp.is_racy() || stamp.proves(&now(&path)));
        stamp.is_racy() && !stamp.proves(&now(&path))
    });
    assert!(was_just_written);
    settle(&path);
    let stamp = read_now(&path);
    assert!(stamp.proves(&now(&path)));

    // The index keeps both stamps as given.
    let options = options(0.01);
    let mut builder = IndexBuilder::in_memory(&options);
    let racy = stamp.after_reading(&stamp, SystemTime::UNIX_EPOCH);
    for (id, stamp) in [
        ("fresh", Some(stamp)),
        ("racy", Some(racy)),
        ("no file", None),
    ] {
        builder.add(id, stamp, &numbered(&options, 0, 5)).unwrap();
    }
    builder
        .add_unindexed("unread", Some(stamp), "no permission")
        .unwrap();
    let index = FileIndex::from_bytes(builder.finish().unwrap().to_bytes()).unwrap();
    let fresh: Vec<bool> = index
        .entries()
        .map(|entry| entry.is_fresh(&now(&path)))
        .collect();
    assert_eq!(fresh, [true, false, false, true]);
    assert_eq!(index.entry(0).stamp(), Some(stamp));
    assert!(index.entry(1).stamp().unwrap().is_racy());
}

#[test]
fn a_file_that_changes_while_it_is_read_proves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    fs::write(&path, "one").unwrap();
    settle(&path);
    let (began, before) = (SystemTime::now(), now(&path));
    fs::write(&path, "three").unwrap();
    let stamp = before.after_reading(&now(&path), began);
    assert!(stamp.is_racy() && !stamp.proves(&before) && !stamp.proves(&now(&path)));
}

/// Appended, truncated, rewritten, replaced: each is detected.
#[test]
fn changed_files_are_stale() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let write = |content: &str| fs::write(&path, content).unwrap();
    let replace = |content: &str| {
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        let other = dir.path().join("other");
        fs::write(&other, content).unwrap();
        fs::File::open(&other)
            .unwrap()
            .set_modified(modified)
            .unwrap();
        fs::rename(&other, &path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), modified);
    };
    let stale_when = |what: &str, change: &dyn Fn()| {
        fs::write(&path, "content").unwrap();
        settle(&path);
        let stamp = read_now(&path);
        assert!(stamp.proves(&now(&path)));
        change();
        assert!(!stamp.proves(&now(&path)), "{what}");
    };
    stale_when("appended", &|| write("content and more"));
    stale_when("truncated", &|| write("con"));
    stale_when("rewritten", &|| write("CONTENT"));
    if cfg!(unix) {
        stale_when("replaced by one of equal size and time", &|| {
            replace("CONTENT")
        });
    }
}

/// The rule itself: the last change must be a tick before the reading began.
#[test]
fn how_near_is_too_near() {
    const SECOND: i64 = 1_000_000_000;
    let began = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
    let racy = |changed: i64| {
        // Without a time of change, the time of modification decides.
        let stamp = Stamp::new(1, changed, changed, 1);
        stamp.after_reading(&stamp, began).is_racy()
    };
    let millis = |ms: i64| 1_000 * SECOND + ms * SECOND / 1000 + 1;
    assert!(racy(millis(5)) && racy(millis(0)) && racy(millis(-15)));
    assert!(!racy(millis(-25)) && !racy(millis(-3000)));
    // Times in whole seconds come from file systems without fractions.
    assert!(racy(1_000 * SECOND) && racy(999 * SECOND) && racy(998 * SECOND));
    assert!(!racy(997 * SECOND));
    // From the future, and out of range.
    assert!(racy(2_000 * SECOND) && racy(i64::MAX) && !racy(i64::MIN));
    // A modification time set to the future is harmless if there is a time of change.
    if cfg!(unix) {
        let stamp = Stamp::new(1, i64::MAX, 5, 1);
        assert!(!stamp.after_reading(&stamp, began).is_racy());
    }
}
