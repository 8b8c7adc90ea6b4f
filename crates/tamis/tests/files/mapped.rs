//! Files that processes share: killed writers, crashed machines, locks, full disks. The other
//! processes run this test binary, with a task in `ROLE`.

mod crashes;

use crate::common::{BODY, BODY_CHECKSUM, BOOT, KEYS};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tamis::{AnyFilter, Blocked, Bloom, Error, Hasher, KeyCount, Kind, Open, Plan, file::FileLock};

const ROLE: &str = "TAMIS_TEST_ROLE";
const FILE: &str = "TAMIS_TEST_FILE";
const NAME: &str = "TAMIS_TEST_NAME";

/// Not really a test: the body of the child processes.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let path = PathBuf::from(std::env::var(FILE).unwrap());
    let name = std::env::var(NAME).unwrap();
    match role.as_str() {
        "add for ever" => {
            let seen = Blocked::share(&path).unwrap();
            let mut out = std::io::stdout().lock();
            for i in 0u64.. {
                let key = format!("{name}-{i}");
                seen.insert(&key);
                // Print only keys whose insert has returned.
                writeln!(out, "key {key}").unwrap();
            }
        }
        "add" => {
            let seen = Blocked::share(&path).unwrap();
            for key in keys_of(&name) {
                assert!(seen.insert(&key), "{key}");
            }
            seen.close().unwrap();
        }
        "load, add, save" => {
            for key in keys_of(&name).iter().take(ROUNDS) {
                let mut lock = FileLock::acquire(&path).unwrap();
                let seen = Blocked::load(&path).unwrap();
                assert!(seen.insert(key), "{key}");
                seen.save_under(&mut lock).unwrap();
            }
        }
        "hold the lock" => {
            let _lock = FileLock::acquire(&path).unwrap();
            println!("key locked");
            std::thread::sleep(Duration::from_secs(60));
        }
        "save to a full disk" => full_disk(&path),
        "save beyond a limit" => limited_file_size(&path),
        "fork" => forked(&path),
        other => panic!("{other}?"),
    }
}

const ROUNDS: usize = 12;

fn keys_of(name: &str) -> Vec<String> {
    (0..3_000).map(|i| format!("{name}-{i}")).collect()
}

fn command(role: &str, path: &Path, name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "--exact",
            "mapped::child",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(ROLE, role)
        .env(FILE, path)
        .env(NAME, name);
    command
}

fn start(role: &str, path: &Path, name: &str) -> Child {
    command(role, path, name)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn finish(mut child: Child) {
    // Read to the end, or the child would block on a full pipe.
    let mut text = String::new();
    std::io::Read::read_to_string(child.stdout.as_mut().unwrap(), &mut text).unwrap();
    assert!(child.wait().unwrap().success(), "{text}");
}

/// The key in a line that a child printed, if the line is complete.
fn printed(line: &str) -> Option<&str> {
    line.strip_suffix('\n')?
        .split_once("key ")
        .map(|(_, key)| key)
}

fn new_file(capacity: u64, rate: f64) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("seen.tamis");
    let plan = Plan::for_rate(Kind::Blocked, capacity, rate).unwrap();
    AnyFilter::create(&path, &plan, Hasher::default()).unwrap();
    (dir, path)
}

fn marked(path: &Path) -> bool {
    fs::read(path).unwrap()[BOOT] != [0; 16]
}

#[test]
fn processes_add_to_one_file_at_once() {
    let (_dir, path) = new_file(20_000, 1e-9);
    let names = ["red", "green", "blue"];
    // Also held open here, so that the children meet.
    let own = Blocked::share(&path).unwrap();
    let children: Vec<Child> = names.iter().map(|n| start("add", &path, n)).collect();
    for key in keys_of("own") {
        assert!(own.insert(key));
    }
    children.into_iter().for_each(finish);
    assert!(marked(&path), "one writer is still there");
    own.close().unwrap();
    assert!(!marked(&path), "the last one took the mark away");

    let seen = Blocked::load(&path).unwrap();
    assert_eq!(seen.keys(), KeyCount::Counted(4 * 3_000));
    for name in names.iter().chain(&["own"]) {
        for key in keys_of(name) {
            assert!(seen.contains(&key), "{key}");
        }
    }
    assert_eq!(fs::read(&path).unwrap()[KEYS], 12_000u64.to_le_bytes());
}

#[test]
fn processes_come_and_go_on_one_file() {
    let (_dir, path) = new_file(20_000, 1e-9);
    // Nobody keeps it open, so opening and closing processes meet.
    let children: Vec<Child> = ["a", "b", "c", "d"]
        .iter()
        .map(|name| start("add", &path, name))
        .collect();
    children.into_iter().for_each(finish);
    assert!(!marked(&path));
    let seen = Blocked::load(&path).unwrap();
    for key in ["a", "b", "c", "d"].iter().flat_map(|name| keys_of(name)) {
        assert!(seen.contains(&key), "{key}");
    }
    count_is_right(seen.keys(), 4 * 3_000);
}

/// If a process opens the file while another closes it, the count may be an estimate, but is never
/// wrong.
fn count_is_right(keys: KeyCount, truth: u64) {
    match keys {
        KeyCount::Counted(n) => assert_eq!(n, truth),
        KeyCount::Estimated(n) => assert!(n.abs_diff(truth) <= truth / 20, "{n} for {truth}"),
    }
}

/// Opens and closes the file continually: each process may find it just being closed, marked or
/// unmarked.
#[test]
fn openers_and_leavers_race() {
    let (_dir, path) = new_file(20_000, 1e-9);
    std::thread::scope(|scope| {
        for t in 0..3 {
            let path = &path;
            scope.spawn(move || {
                for i in 0..40 {
                    let seen = Blocked::share(path).unwrap();
                    assert!(seen.insert(format!("{t}-{i}")));
                    seen.close().unwrap();
                }
            });
        }
    });
    assert!(!marked(&path));
    let seen = Blocked::load(&path).unwrap();
    for key in (0..3).flat_map(|t| (0..40).map(move |i| format!("{t}-{i}"))) {
        assert!(seen.contains(&key), "{key}");
    }
    count_is_right(seen.keys(), 120);
}

#[test]
fn a_dropped_share_is_a_closed_one() {
    let (_dir, path) = new_file(1_000, 0.01);
    let seen = Blocked::share(&path).unwrap();
    seen.insert("key");
    assert!(marked(&path));
    seen.sync().unwrap();
    drop(seen);
    assert!(!marked(&path));
    // It is small, so closing seals it again.
    assert!(AnyFilter::verify(&path, &Open::new()).unwrap());
    let seen = Blocked::load(&path).unwrap();
    assert_eq!(seen.keys(), KeyCount::Counted(1));
    let bytes = fs::read(&path).unwrap();
    seen.save(&path).unwrap();
    assert_eq!(fs::read(&path).unwrap(), bytes, "as a save would have it");
}

#[test]
fn a_large_file_that_was_written_in_place_is_not_sealed() {
    let (_dir, path) = new_file(20_000_000, 0.01);
    Blocked::share(&path).unwrap().insert("key");
    assert!(!marked(&path));
    assert_eq!(fs::read(&path).unwrap()[BODY_CHECKSUM], [0; 8]);
    assert!(!AnyFilter::verify(&path, &Open::new()).unwrap());
    let seen = Blocked::load(&path).unwrap();
    seen.save(&path).unwrap();
    assert!(AnyFilter::verify(&path, &Open::new()).unwrap());
}

#[test]
fn every_kind_is_sealed_as_a_save_would() {
    for kind in [Kind::Bloom, Kind::Blocked, Kind::Counting, Kind::Growing] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let plan = Plan::for_rate(kind, 1_000, 0.01).unwrap();
        AnyFilter::create(&path, &plan, Hasher::default()).unwrap();
        for round in 0..3u64 {
            let mut seen = Open::new().share(&path).unwrap();
            for i in 0..5_000 * round {
                seen.insert(i.to_le_bytes()).unwrap();
            }
            seen.close().unwrap();
            let file = fs::read(&path).unwrap();
            assert!(AnyFilter::verify(&path, &Open::new()).unwrap(), "{kind}");
            assert_eq!(AnyFilter::load(&path).unwrap().to_bytes(), file, "{kind}");
        }
    }
}

fn busy<T: std::fmt::Debug>(result: Result<T, Error>) {
    let error = result.expect_err("two writers met");
    assert!(matches!(error, Error::Busy { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("seen.tamis"), "{text}");
    assert!(text.contains("another process is writing"), "{text}");
}

#[test]
fn writers_of_different_ways_exclude_each_other() {
    let (_dir, path) = new_file(1_000, 0.01);
    let plan = Plan::for_rate(Kind::Bloom, 10, 0.01).unwrap();

    // Processes that share the file block those that save it.
    let shared = Blocked::share(&path).unwrap();
    shared.insert("key");
    busy(FileLock::try_acquire(&path));
    busy(Bloom::new(10, 0.1).unwrap().save(&path));
    busy(shared.save(&path));
    busy(AnyFilter::create_over(&path, &plan, Hasher::default()));
    shared.close().unwrap();

    // A process that saves blocks all others; those that share wait a little first.
    let lock = FileLock::try_acquire(&path).unwrap();
    busy(FileLock::try_acquire(&path));
    busy(Bloom::new(10, 0.1).unwrap().save(&path));
    busy(Blocked::share(&path));
    // Readers are never blocked.
    assert!(Blocked::load(&path).unwrap().contains("key"));
    assert!(Blocked::open(&path).unwrap().contains("key"));
    drop(lock);
    assert!(Blocked::share(&path).unwrap().contains("key"));
}

#[test]
fn a_dead_process_holds_no_lock() {
    let (_dir, path) = new_file(1_000, 0.01);
    let mut child = start("hold the lock", &path, "");
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while printed(&line) != Some("locked") {
        line.clear();
        assert_ne!(out.read_line(&mut line).unwrap(), 0, "the child ended");
    }
    busy(FileLock::try_acquire(&path));
    child.kill().unwrap();
    child.wait().unwrap();
    FileLock::acquire(&path).unwrap();
}

#[test]
fn load_work_save_under_a_lock_keeps_the_keys_of_all() {
    let (_dir, path) = new_file(1_000, 1e-6);
    let names = ["first", "second"];
    let children: Vec<Child> = names
        .iter()
        .map(|name| start("load, add, save", &path, name))
        .collect();
    children.into_iter().for_each(finish);
    let seen = Blocked::load(&path).unwrap();
    for name in names {
        for key in keys_of(name).iter().take(ROUNDS) {
            assert!(seen.contains(key), "{key}");
        }
    }
    assert_eq!(seen.keys(), KeyCount::Counted(2 * ROUNDS as u64));
}

#[test]
fn nothing_is_overwritten_that_must_not_be() {
    let (_dir, path) = new_file(1_000, 0.01);
    let before = fs::read(&path).unwrap();
    let other = Blocked::new(10, 0.01).unwrap();
    let plan = Plan::for_rate(Kind::Bloom, 10, 0.01).unwrap();
    for error in [
        other.save_new(&path).unwrap_err(),
        AnyFilter::create(&path, &plan, Hasher::default()).unwrap_err(),
    ] {
        assert!(error.to_string().contains("exists"), "{error}");
    }
    assert_eq!(fs::read(&path).unwrap(), before);
    AnyFilter::create_over(&path, &plan, Hasher::default()).unwrap();
    assert_eq!(AnyFilter::open(&path).unwrap().kind(), Kind::Bloom);
}

#[test]
fn a_symbolic_link_stays_a_link() {
    let (dir, path) = new_file(1_000, 0.01);
    let link = dir.path().join("link.tamis");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let seen = Blocked::load(&link).unwrap();
    seen.insert("key");
    seen.save(&link).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(Blocked::load(&path).unwrap().contains("key"));
}

/// Saves a filter of 1.2 MB over an old, small one.
fn every_way_to_write_fails(path: &Path, reason: &str) {
    let large = Blocked::new(1_000_000, 0.01).unwrap();
    large.insert("large");
    let plan = Plan::for_rate(Kind::Blocked, 1_000_000, 0.01).unwrap();
    let dir = path.parent().unwrap();
    let new = dir.join("new.tamis");
    let before = fs::read(path).unwrap();
    let mut lock = FileLock::acquire(path).unwrap();
    for (way, result) in [
        ("save_under", large.save_under(&mut lock)),
        ("save_new", large.save_new(&new)),
        ("save elsewhere", large.save(&new)),
        ("create", AnyFilter::create(&new, &plan, Hasher::default())),
    ] {
        let text = result.expect_err(way).to_string();
        assert!(text.contains(reason), "{way}: {text}");
        assert_eq!(fs::read(path).unwrap(), before, "{way}: the old file");
        assert_eq!(fs::read_dir(dir).unwrap().count(), 1, "{way}: litter");
    }
    drop(lock);
    assert!(large.save(path).is_err());
    assert!(Blocked::load(path).unwrap().contains("old"));
}

fn full_disk(path: &Path) {
    let small = Blocked::new(1_000, 0.01).unwrap();
    small.insert("old");
    small.save(path).unwrap();
    every_way_to_write_fails(path, "No space left");
}

fn limited_file_size(path: &Path) {
    let limit = libc::rlimit {
        rlim_cur: 1 << 18,
        rlim_max: 1 << 18,
    };
    // SAFETY: plain system calls; the signal's default would end the process,
    // ignored the write fails instead.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
    }
    every_way_to_write_fails(path, "too large");
}

/// A write that fails in the middle, as on a full disk, on every system.
#[test]
fn a_save_that_fails_midway_keeps_the_old_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("seen.tamis");
    let small = Blocked::new(1_000, 0.01).unwrap();
    small.insert("old");
    small.save(&path).unwrap();
    finish(start("save beyond a limit", &path, ""));
}

/// A disk that is really full, if this machine lets us mount one.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_keeps_the_old_file() {
    let dir = tempfile::tempdir().unwrap();
    let child = command("save to a full disk", &dir.path().join("seen.tamis"), "");
    // In a separate mount namespace, so that the mount ends with it.
    let mut mounted = Command::new("unshare");
    const NO_MOUNT: i32 = 77;
    let script = format!(r#"mount -t tmpfs -o size=512k none "$0" || exit {NO_MOUNT}; exec "$@""#);
    mounted
        .args(["--mount", "--map-root-user", "sh", "-c", &script])
        .arg(dir.path())
        .arg(child.get_program())
        .args(child.get_args())
        .envs(child.get_envs().filter_map(|(k, v)| Some((k, v?))));
    let out = mounted.output().expect("unshare (util-linux) is needed");
    let said = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
    // Death by a signal, such as SIGBUS, has no code and also fails.
    if out.status.code() == Some(NO_MOUNT) && std::env::var_os("TAMIS_NO_MOUNT").is_some() {
        // Bypasses the capture of test output, so that it is noticed.
        let _ = writeln!(std::io::stderr(), "SKIPPED a_full_disk_keeps_the_old_file");
        return;
    }
    assert!(
        out.status.success(),
        "{}; where no tmpfs can be mounted, TAMIS_NO_MOUNT=1 skips this test\n{said}",
        out.status
    );
}

/// The bodies of a saved and of a mapped file are the same bytes.
#[test]
fn in_place_and_saved_files_are_the_same_body() {
    let (_dir, path) = new_file(1_000, 0.01);
    let heap = Blocked::load(&path).unwrap();
    let shared = Blocked::share(&path).unwrap();
    for key in keys_of("same").iter().take(1_000) {
        assert_eq!(heap.insert(key), shared.insert(key));
    }
    shared.close().unwrap();
    assert_eq!(fs::read(&path).unwrap()[BODY..], heap.to_bytes()[BODY..]);
}

/// A forked child has its parent's mapping and lock, and may add after the parent has closed the
/// file. A checksum would then be outdated.
#[test]
fn what_a_forked_child_may_still_write_is_not_sealed() {
    let (_dir, path) = new_file(1_000, 0.01);
    // Not in this process: the child would inherit the files of other tests.
    finish(start("fork", &path, ""));
}

fn forked(path: &Path) {
    let (mut go, wait) = std::io::pipe().map(|(read, write)| (write, read)).unwrap();
    let seen = Blocked::share(path).unwrap();
    // SAFETY: the child only reads a pipe, sets bits in memory, and ends at once.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        drop(go);
        let _ = std::io::Read::read(&mut &wait, &mut [0]);
        seen.insert("late");
        // SAFETY: ends the process, without anything that the test's threads may hold.
        unsafe { libc::_exit(0) };
    }
    seen.close().unwrap();
    std::io::Write::write_all(&mut go, b"!").unwrap();
    // SAFETY: waits for the child made above.
    let ended = unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    assert_eq!(ended, child);
    assert!(!AnyFilter::verify(path, &Open::new()).unwrap());
    assert!(Blocked::load(path).unwrap().contains("late"));
    // The next process seals it.
    drop(Blocked::share(path).unwrap());
    assert!(AnyFilter::verify(path, &Open::new()).unwrap());
}
