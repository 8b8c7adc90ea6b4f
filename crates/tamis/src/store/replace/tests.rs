//! Failed writes, links, modes and owners, temporary files of dead processes.

use super::*;
use std::io::Write;

fn write(path: &Path, existing: Existing, content: &str) -> Result<(), Error> {
    write_atomically(path, existing, Readers::AsUsual, |file| {
        file.write_all(content.as_bytes())
    })
    .map(drop)
}

fn names(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_failed_write_leaves_the_old_file_and_no_litter() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    fs::write(&path, "old").unwrap();
    let result = write_atomically(&path, Existing::Replace, Readers::AsUsual, |_| {
        Err(io::ErrorKind::StorageFull.into())
    });
    assert!(result.is_err());
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(names(dir.path()), ["f"]);
}

#[test]
fn keep_refuses_what_exists() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    write(&path, Existing::Keep, "1").unwrap();
    let again = write(&path, Existing::Keep, "2").unwrap_err();
    assert!(again.to_string().contains("exists"), "{again}");
    assert_eq!(fs::read(&path).unwrap(), b"1");
    assert_eq!(names(dir.path()), ["f"]);
    // Also a file that appeared during the write.
    let other = dir.path().join("g");
    let mut late = Replacement::begin(&other, Existing::Keep).unwrap();
    late.file().write_all(b"late").unwrap();
    fs::write(&other, "early").unwrap();
    assert!(late.place().is_err());
    assert_eq!(fs::read(&other).unwrap(), b"early");
    assert_eq!(names(dir.path()), ["f", "g"]);
}

#[cfg(unix)]
#[test]
fn dead_temporary_files_go_and_living_ones_stay() {
    let dir = tempfile::tempdir().unwrap();
    let alive = create_in(dir.path()).unwrap();
    let dead = dir.path().join(".tamis-123456.tmp");
    let like = [".tamis-123456", "x.tamis-1.tmp", "tamis-1.tmp"];
    fs::write(&dead, "half").unwrap();
    like.iter()
        .for_each(|name| fs::write(dir.path().join(name), "").unwrap());
    write(&dir.path().join("f"), Existing::Keep, "").unwrap();
    assert!(!dead.exists());
    assert!(alive.path().exists());
    assert!(like.iter().all(|name| dir.path().join(name).exists()));
    // Call this directly, because a folder is swept only once.
    remove_if_dead(alive.path()).unwrap();
    assert!(alive.path().exists());
    let (file, path) = alive.keep().unwrap();
    drop(file);
    remove_if_dead(&path).unwrap();
    assert!(!path.exists());
}

/// Processes create and sweep at once; each keeps its own files.
#[cfg(unix)]
#[test]
fn a_sweep_never_takes_a_file_from_its_owner() {
    let dir = tempfile::tempdir().unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                for entry in fs::read_dir(dir.path()).unwrap().flatten() {
                    let _ = remove_if_dead(&entry.path());
                }
            }
        });
        for _ in 0..2000 {
            let file = create_in(dir.path()).unwrap();
            assert!(is_at(file.as_file(), file.path()).unwrap());
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn a_partial_result_takes_a_name_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let partial = |name: &str| {
        let mut file = Replacement::begin(dir.path().join(name), Existing::Replace).unwrap();
        file.file().write_all(b"half").unwrap();
        let kept = file.keep_partial().unwrap();
        assert_eq!(fs::read(&kept).unwrap(), b"half");
        kept.file_name().unwrap().to_str().unwrap().to_owned()
    };
    fs::write(dir.path().join("f"), "old").unwrap();
    assert_eq!(partial("f"), "f.partial");
    assert_eq!(partial("f"), "f.partial-2");
    assert_eq!(fs::read(dir.path().join("f")).unwrap(), b"old");
    let long = "n".repeat(250);
    assert!(partial(&long).starts_with("tamis-"));
    write(&dir.path().join(&long), Existing::Keep, "").unwrap();
}

#[cfg(unix)]
#[test]
fn only_regular_files_are_opened_or_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    // Not with a command: until it runs, a child holds all locks that other tests release.
    let name = std::ffi::CString::new(fifo.to_str().unwrap()).unwrap();
    // SAFETY: the name ends with a zero.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let socket = dir.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let link = dir.path().join("link");
    std::os::unix::fs::symlink("fifo", &link).unwrap();
    for path in [&fifo, &socket, &link, Path::new("/dev/null"), dir.path()] {
        assert!(open_regular(path, false).is_err());
        assert!(open_regular(path, true).is_err());
        for existing in [Existing::Keep, Existing::Replace] {
            let refused = Replacement::begin(path, existing).unwrap_err().to_string();
            assert!(refused.contains(path.to_str().unwrap()), "{refused}");
        }
    }
    let slash = dir.path().join("new/");
    assert!(Replacement::begin(slash, Existing::Keep).is_err());
    assert!(Replacement::begin("", Existing::Keep).is_err());
    assert_eq!(names(dir.path()), ["fifo", "link", "socket"]);
}

#[cfg(unix)]
#[test]
fn links_stay_links_and_files_keep_their_mode() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let mode = |name: &str| fs::metadata(at(name)).unwrap().permissions().mode() & 0o7777;
    fs::create_dir(at("sub")).unwrap();
    symlink("sub/one", at("first")).unwrap();
    symlink("first", at("second")).unwrap();
    // First the link dangles, then it points to a file.
    write(&at("second"), Existing::Keep, "1").unwrap();
    fs::set_permissions(at("sub/one"), fs::Permissions::from_mode(0o604)).unwrap();
    write(&at("second"), Existing::Replace, "2").unwrap();
    assert_eq!(fs::read(at("sub/one")).unwrap(), b"2");
    assert_eq!(mode("sub/one"), 0o604);
    assert!(at("second").is_symlink() && at("first").is_symlink());
    let secret = |path: &Path| {
        write_atomically(path, Existing::Replace, Readers::Owner, |_| Ok(())).unwrap()
    };
    secret(&at("secret"));
    secret(&at("sub/one"));
    assert_eq!((mode("secret"), mode("sub/one")), (0o600, 0o600));
    symlink("loop", at("loop")).unwrap();
    assert!(Replacement::begin(at("loop"), Existing::Replace).is_err());
}

/// Anyone who opens a file while it is written can read all of it, whatever its mode is later.
#[cfg(unix)]
#[test]
fn nobody_else_may_read_a_file_before_it_is_complete() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    fs::write(at("usual"), "").unwrap();
    let usual = mode(&at("usual"));
    for (name, before) in [
        ("new", None),
        ("private", Some(0o600)),
        ("open", Some(0o664)),
    ] {
        if let Some(before) = before {
            fs::write(at(name), "old").unwrap();
            fs::set_permissions(at(name), fs::Permissions::from_mode(before)).unwrap();
        }
        let begin = || {
            let mut file = Replacement::begin(at(name), Existing::Replace).unwrap();
            file.file().write_all(b"content").unwrap();
            assert_eq!(mode(file.file.path()), 0o600, "{name}");
            file
        };
        let partial = begin().keep_partial().unwrap();
        assert_eq!(mode(&partial), before.unwrap_or(usual), "{name}");
        begin().place().unwrap();
        assert_eq!(mode(&at(name)), before.unwrap_or(usual), "{name}");
        begin().readers(Readers::Owner).place().unwrap();
        assert_eq!(mode(&at(name)), 0o600, "{name}");
    }
}

#[cfg(unix)]
#[test]
fn a_replaced_file_keeps_its_owner() {
    use std::os::unix::fs::{MetadataExt, chown};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    fs::write(&path, "old").unwrap();
    let ours = fs::metadata(&path).unwrap().uid();
    // Only root can give the file to another owner.
    let owner = match chown(&path, Some(1234), Some(1234)) {
        Ok(()) => 1234,
        Err(_) => ours,
    };
    write(&path, Existing::Replace, "new").unwrap();
    let now = fs::metadata(&path).unwrap();
    assert_eq!(now.uid(), owner);
    assert_eq!(fs::read(&path).unwrap(), b"new");
}
