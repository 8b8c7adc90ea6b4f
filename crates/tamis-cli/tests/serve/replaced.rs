//! Files that are replaced while being served.

use crate::common::Sandbox;
use crate::service::{Service, receive, send};
use std::fs;
use std::io::BufReader;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Two lists without a common key, of very different sizes, that hardly ever give a false yes.
fn two_lists(dir: &Sandbox) {
    let keys = |of: char, n: u32| (0..n).map(|i| format!("{of}{i}\n")).collect::<String>();
    dir.write("a", keys('a', 300));
    dir.write("b", keys('b', 100_000));
    dir.ok("build -p 1e-9 a.tamis a");
    dir.ok("build -p 1e-9 b.tamis b");
}

/// Replaces the served file with a copy of a list.
fn put(dir: &Sandbox, list: char) {
    fs::copy(dir.path(&format!("{list}.tamis")), dir.path("new")).unwrap();
    fs::rename(dir.path("new"), dir.path("list.tamis")).unwrap();
}

/// Stops other threads when a test ends, even if it fails.
pub(crate) struct Stop<'a>(pub(crate) &'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn a_hundred_replacements_under_load() {
    let dir = Sandbox::new();
    two_lists(&dir);
    put(&dir, 'a');
    let service = Service::start(&dir, "list.tamis");
    let keys: String = (0..300).map(|i| format!("a{i}\nb{i}\n")).collect();
    let answers = |is_a: bool| ["yes\nno\n", "no\nyes\n"][usize::from(!is_a)].repeat(300);
    let (all_a, all_b) = (answers(true), answers(false));
    let is_over = AtomicBool::new(false);
    let (from_a, from_b) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut stream = service.connect();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                while !is_over.load(Relaxed) {
                    let line = "POST /v1/filters/list/check";
                    send(&mut stream, service.address, line, "", keys.as_bytes()).unwrap();
                    let answer = receive(&mut reader).unwrap();
                    assert_eq!(answer.status, 200, "{}", answer.text());
                    let text = answer.text();
                    match (text == all_a, text == all_b) {
                        (true, _) => from_a.fetch_add(1, Relaxed),
                        (_, true) => from_b.fetch_add(1, Relaxed),
                        _ => panic!("an answer of neither list: {text}"),
                    };
                }
            });
        }
        // The clients must end, whatever happens here.
        let _stop = Stop(&is_over);
        for turn in 1..=100 {
            let answers = [&from_a, &from_b][turn % 2];
            let before = answers.load(Relaxed);
            put(&dir, ['a', 'b'][turn % 2]);
            service.until("the new file is taken", || {
                service.json("/v1/filters/list")["times_replaced"] == turn
            });
            service.until("it answers the clients", || answers.load(Relaxed) > before);
        }
    });
    assert_eq!(service.check("list", "a1\nb1"), "yes\nno\n");
    service.end();
}

/// A replacement must be valid, or the old filter continues to answer, and everyone can see why.
#[test]
fn whatever_becomes_of_the_file_the_old_one_answers() {
    let dir = Sandbox::new();
    two_lists(&dir);
    put(&dir, 'b');
    let whole = dir.read("b.tamis");
    let mut service = Service::start(&dir, "list.tamis");
    let path = dir.path("list.tamis");
    let remove = || {
        let _ = fs::remove_file(&path);
        let _ = fs::remove_dir(&path);
    };
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    let cut = |len: usize| {
        // In place: a process that has it mapped would crash at the next access.
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_len(len as u64).unwrap();
    };
    let spoilt: [(&str, &dyn Fn()); 11] = [
        ("another file", &|| {
            fs::write(&path, "root:x:0:0:".repeat(100)).unwrap();
        }),
        ("cut to nothing", &|| cut(0)),
        ("cut within the header", &|| cut(100)),
        ("cut behind the header", &|| cut(128)),
        ("cut in half", &|| cut(whole.len() / 2)),
        ("grown", &|| cut(whole.len() + 1)),
        ("one bit flipped", &|| fs::write(&path, &flipped).unwrap()),
        ("noise", &|| fs::write(&path, vec![0xA5; 10_000]).unwrap()),
        ("gone", &remove),
        ("a folder", &|| {
            remove();
            fs::create_dir(&path).unwrap();
        }),
        ("a link to itself", &|| {
            remove();
            std::os::unix::fs::symlink("list.tamis", &path).unwrap();
        }),
    ];
    for (what, spoil) in spoilt {
        spoil();
        service.until(what, || {
            !service.json("/v1/filters/list")["fault"].is_null()
        });
        assert_eq!(
            service.check("list", "a1\nb1\nb99999"),
            "no\nyes\nyes\n",
            "{what}"
        );
        let metrics = service.get("/metrics").text();
        assert!(
            metrics.contains("tamis_filter_fault{filter=\"list\"} 1"),
            "{what}"
        );
        let fault = service.json("/v1/filters/list")["fault"].clone();
        let fault = fault.as_str().unwrap();
        assert!(!fault.contains("root:x"), "{fault}");
        service.until(fault, || service.log().contains(fault));
        assert!(service.is_running(), "{what}");

        remove();
        put(&dir, 'b');
        service.until("sound again", || {
            service.json("/v1/filters/list")["fault"].is_null()
        });
    }
    put(&dir, 'a');
    service.until("the new file answers", || {
        service.check("list", "a1\nb1") == "yes\nno\n"
    });
    service.end();
}

/// A file that is overwritten gradually is loaded once it is complete, and never answers before.
#[test]
fn a_file_written_in_place_is_taken_when_it_is_whole() {
    let dir = Sandbox::new();
    two_lists(&dir);
    put(&dir, 'a');
    let service = Service::start(&dir, "list.tamis");
    let new = dir.read("b.tamis");
    let mut file = fs::File::create(dir.path("list.tamis")).unwrap();
    for piece in new.chunks(new.len() / 7 + 1) {
        use std::io::Write as _;
        file.write_all(piece).unwrap();
        let answers = service.check("list", "a1\na299\nb1\nb99999");
        let is_old = answers == "yes\nyes\nno\nno\n";
        let is_new = answers == "no\nno\nyes\nyes\n";
        assert!(is_old || is_new, "{answers}");
    }
    drop(file);
    service.until("the new file answers", || {
        service.check("list", "a1\nb1") == "no\nyes\n"
    });
    service.end();
}

/// A filter that `tamis add` changes is reloaded, even without a checksum.
#[test]
fn additions_of_others_are_seen() {
    let dir = Sandbox::new();
    dir.write("more", "later\n");
    dir.ok("create seen.tamis --capacity 1000 -p 1e-6");
    let service = Service::start(&dir, "seen.tamis");
    assert_eq!(service.check("seen", "later"), "no\n");
    dir.ok("add seen.tamis more");
    service.until("added", || service.check("seen", "later") == "yes\n");
    dir.write("more", "in place\n");
    dir.ok("add --shared seen.tamis more");
    service.until("added", || service.check("seen", "in place") == "yes\n");
    service.end();
}
