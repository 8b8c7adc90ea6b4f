//! Windows: what is new and what was forgotten, by the clock and by given times.

use crate::common::Sandbox;
use crate::service::{Answer, Service, TOKEN};
use crate::windows;
use serde_json::json;
use std::sync::Barrier;
use std::time::Duration;
use tamis::{
    Hasher, Moment, Window,
    window::{Renewal, Span, WindowOptions},
};

const HOUR: Duration = Duration::from_secs(3_600);
/// The generation of a one-hour window.
const BAND: Duration = Duration::from_secs(450);

/// A folder with a one-hour window, `seen.tamis`.
fn hour() -> Sandbox {
    let dir = Sandbox::new();
    save(&dir, &Window::within(HOUR, 10_000, 1e-6).unwrap());
    dir
}

fn save(dir: &Sandbox, window: &Window) {
    window.save(dir.path("seen.tamis")).unwrap();
}

impl Service {
    fn add_at(&self, keys: &str, at: Moment) -> Answer {
        let headers = format!("authorization: Bearer {TOKEN}\r\n");
        let line = format!("POST /v1/filters/seen/add?at={}", seconds(at));
        self.ask(&line, &headers, keys)
    }

    fn check_at(&self, keys: &str, at: Moment) -> String {
        let line = format!("POST /v1/filters/seen/check?at={}", seconds(at));
        let answer = self.ask(&line, "", keys);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.text()
    }
}

fn seconds(at: Moment) -> f64 {
    at.micros() as f64 / 1e6
}

/// The start of a generation in the past.
fn ago(time: Duration) -> Moment {
    let start = (Moment::now() - time).micros();
    let band = BAND.as_micros() as i64;
    Moment::from_micros(start.div_euclid(band) * band)
}

#[test]
fn the_events_that_every_host_knows() {
    for (meaning, renewal) in [("within", Renewal::Within), ("quiet", Renewal::Quiet)] {
        let dir = Sandbox::new();
        let options = WindowOptions::new(Span::Time(HOUR)).renewal(renewal);
        let window = Window::with_options(&options, 1_000, 1e-9, Hasher::default());
        save(&dir, &window.unwrap());
        let service = Service::start_writing(&dir, "seen.tamis");
        windows::replay(meaning, |event| match event.is_asked {
            true => service.check_at(&event.key, event.at) == "yes\n",
            // Some answers are "new, too old".
            false => service
                .add_at(&event.key, event.at)
                .text()
                .starts_with("new"),
        });
    }
}

#[test]
fn keys_are_remembered_for_the_window_and_then_forgotten() {
    let dir = hour();
    let service = Service::start_writing(&dir, "seen.tamis");
    let then = ago(5 * HOUR);
    assert_eq!(
        service.add_at("a\nb\na\n", then).text(),
        "new\nnew\nknown\n"
    );
    let last = then + HOUR;
    assert_eq!(service.check_at("a\nc", last), "yes\nno\n");
    assert_eq!(service.add_at("a", last).text(), "known\n");
    // The key wasn't renewed.
    let over = then + HOUR + BAND;
    assert_eq!(service.check_at("a", over), "no\n");
    assert_eq!(service.add_at("a", over).text(), "new\n");
    // By the clock, which is hours later, everything is forgotten.
    assert_eq!(service.check("seen", "a\nb"), "no\nno\n");
    assert_eq!(service.add("seen", "a").text(), "new\n");
    assert_eq!(service.add("seen", "a").text(), "known\n");
    assert_eq!(service.check("seen", "a"), "yes\n");
    service.end();
}

#[test]
fn every_sighting_renews_where_the_window_is_quiet() {
    let dir = Sandbox::new();
    save(&dir, &Window::quiet(HOUR, 10_000, 1e-6).unwrap());
    let service = Service::start_writing(&dir, "seen.tamis");
    let then = ago(5 * HOUR);
    assert_eq!(service.add_at("a", then).text(), "new\n");
    assert_eq!(service.add_at("a", then + HOUR).text(), "known\n");
    assert_eq!(service.add_at("a", then + 2 * HOUR).text(), "known\n");
    assert_eq!(service.add_at("a", then + 3 * HOUR + BAND).text(), "new\n");
    service.end();
}

#[test]
fn the_last_keys_need_no_time() {
    let dir = Sandbox::new();
    save(&dir, &Window::new(800, 1e-6).unwrap());
    let service = Service::start_writing(&dir, "seen.tamis");
    let keys = |from, to| -> String { (from..to).map(|i| format!("key{i}\n")).collect() };
    assert_eq!(
        service.add("seen", keys(0, 800)).text(),
        "new\n".repeat(800)
    );
    // Times are ignored, even one that a window of time would refuse.
    let far = Moment::MAX;
    assert_eq!(service.check_at(&keys(0, 800), far), "yes\n".repeat(800));
    assert_eq!(
        service.add_at(&keys(0, 800), far).text(),
        "known\n".repeat(800)
    );
    service.add("seen", keys(1_000, 1_950));
    assert_eq!(service.check("seen", keys(0, 100)), "no\n".repeat(100));
    let window = &service.json("/v1/filters/seen")["window"];
    assert_eq!(
        (&window["by"], &window["span"]),
        (&json!("keys"), &json!(800))
    );
    assert_eq!(window["latest"], json!(null));
    let newest = &window["generations"][0];
    assert_eq!(
        (&newest["start"], &newest["end"]),
        (&json!(1_700), &json!(1_800))
    );
    service.end();
}

/// As replay protection needs: if clients send the same key at the same time, only one of them is told that it is new.
#[test]
fn a_key_is_new_to_exactly_one_of_many_requests() {
    let dir = hour();
    let service = Service::start_writing(&dir, "--save-every 1h seen.tamis");
    let clients = 16;
    let start = Barrier::new(clients);
    for turn in 0..20 {
        // Some by the clock, some with given times, in this generation and the previous one.
        let key = format!("event {turn}");
        let answers: Vec<String> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..clients)
                .map(|client| {
                    let (service, start, key) = (&service, &start, &key);
                    scope.spawn(move || {
                        start.wait();
                        let answer = match client % 3 {
                            0 => service.add("seen", key),
                            1 => service.add_at(key, Moment::now()),
                            _ => service.add_at(key, Moment::now() - BAND),
                        };
                        answer.text()
                    })
                })
                .collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let new = answers.iter().filter(|answer| *answer == "new\n").count();
        let known = answers.iter().filter(|answer| *answer == "known\n").count();
        assert_eq!((new, known), (1, clients - 1), "{answers:?}");
    }
    service.end();
}

#[test]
fn a_save_and_a_restart_forget_nothing_in_the_window() {
    let dir = hour();
    let keys: String = (0..2_000).map(|i| format!("key{i}\n")).collect();
    let then = ago(2 * HOUR);
    let service = Service::start_writing(&dir, "--save-every 1h seen.tamis");
    service.add_at(&keys, then);
    service.end();
    for turn in 1..=8u32 {
        let mut service = Service::start_writing(&dir, "seen.tamis");
        let at = then + BAND * turn;
        assert_eq!(service.check_at(&keys, at), "yes\n".repeat(2_000), "{turn}");
        assert_eq!(service.add_at(&format!("turn {turn}"), at).text(), "new\n");
        service.send_signal(libc::SIGKILL);
        service.wait();
    }
    let service = Service::start_writing(&dir, "seen.tamis");
    let turns: String = (1..=8).map(|turn| format!("turn {turn}\n")).collect();
    let at = then + HOUR + BAND;
    assert_eq!(service.check_at(&turns, at), "yes\n".repeat(8));
    assert_eq!(service.check_at(&keys, at), "no\n".repeat(2_000));
    service.end();
}

/// A time in the far future would make the window forget its keys.
#[test]
fn a_time_of_the_future_is_refused_and_moves_nothing() {
    let dir = hour();
    let service = Service::start_writing(&dir, "seen.tamis");
    service.add("seen", "a");
    let far = Moment::now() + BAND + Duration::from_secs(70);
    for at in [far, far + 100 * HOUR, Moment::from_secs(4_102_444_800)] {
        let refused = service.add_at("b", at);
        assert_eq!(refused.status, 400);
        let error = refused.error();
        assert!(
            error.contains("in the future") && error.contains("send the time"),
            "{error}"
        );
        let line = format!("POST /v1/filters/seen/check?at={}", seconds(at));
        assert_eq!(service.ask(&line, "", "a").status, 400);
    }
    assert_eq!(service.check("seen", "a\nb"), "yes\nno\n");
    // A client's clock may be slightly ahead.
    let near = Moment::now() + BAND + Duration::from_secs(30);
    assert_eq!(service.add_at("b", near).text(), "new\n");
    assert_eq!(service.check("seen", "a\nb"), "yes\nyes\n");
    service.end();
}

#[test]
fn what_is_older_than_the_window_is_new_and_said_to_be_too_old() {
    let dir = hour();
    let service = Service::start_writing(&dir, "seen.tamis");
    service.add("seen", "a");
    let old = ago(HOUR + 2 * BAND);
    assert_eq!(
        service.add_at("b\nc", old).text(),
        "new, too old\nnew, too old\n"
    );
    // It was not kept.
    assert_eq!(service.add_at("b", old).text(), "new, too old\n");
    assert_eq!(service.check_at("b", old), "no, too old\n");
    let headers = format!("authorization: Bearer {TOKEN}\r\naccept: application/json\r\n");
    let line = format!("POST /v1/filters/seen/add?at={}", seconds(old));
    let told = service.ask(&line, &headers, "b").json();
    assert_eq!(
        told,
        json!({ "new": [true], "saved": true, "late": true, "too_old": true })
    );
    let line = format!("POST /v1/filters/seen/check?at={}", seconds(old));
    let told = service.ask(&line, &headers, "b").json();
    assert_eq!(
        told,
        json!({ "found": [false], "late": true, "too_old": true })
    );
    // A late key inside the window is kept, but whether it is new isn't certain.
    let late = ago(HOUR - BAND);
    assert_eq!(service.check_at("d", late), "no, late\n");
    assert_eq!(service.add_at("d", late).text(), "new, late\n");
    assert_eq!(service.add_at("d", late).text(), "known\n");
    let line = format!("POST /v1/filters/seen/add?at={}", seconds(late));
    let told = service.ask(&line, &headers, "e").json();
    assert_eq!(told, json!({ "new": [true], "saved": true, "late": true }));
    // One generation late still counts as in time.
    assert_eq!(
        service
            .add_at("f", ago(Duration::ZERO) - Duration::from_secs(1))
            .text(),
        "new\n"
    );
    assert_eq!(service.check("seen", "d"), "yes\n");
    service.end();
}

/// The clock was set back by hours: keys get the latest time until the clock catches up, and the log reports it once.
#[test]
fn a_clock_that_is_behind_loses_nothing() {
    let dir = Sandbox::new();
    let window = Window::within(HOUR, 10_000, 1e-6).unwrap();
    let latest = Moment::now() + 50 * HOUR;
    window.insert("before", latest);
    save(&dir, &window);
    let service = Service::start_writing(&dir, "seen.tamis");
    for key in ["a", "b", "c"] {
        assert_eq!(service.add("seen", key).text(), "new\n");
        assert_eq!(service.add("seen", key).text(), "known\n");
        assert_eq!(
            service.check("seen", format!("{key}\nbefore")),
            "yes\nyes\n"
        );
    }
    // A client may give a later time, but not go beyond the limit.
    assert_eq!(service.add_at("d", latest).text(), "new\n");
    assert_eq!(service.add_at("e", latest + HOUR).status, 400);
    assert_eq!(service.check_at("a\nd\ne", latest), "yes\nyes\nno\n");
    let log = service.end();
    assert_eq!(log.matches("the clock says").count(), 1, "{log}");
    assert!(log.contains(&format!("keys of {latest}")), "{log}");
    let window = Window::load(dir.path("seen.tamis")).unwrap();
    assert_eq!(window.latest(), Some(latest));
}

/// A file that replaces ours gets the unsaved keys, with their original times.
#[test]
fn another_file_gets_additions_with_their_times() {
    let dir = hour();
    let service = Service::start_writing(&dir, "--save-every 1h seen.tamis");
    let then = ago(HOUR / 2);
    assert_eq!(service.add_at("a", then).text(), "new\n");
    assert_eq!(service.add("seen", "b").text(), "new\n");
    let options = WindowOptions::new(Span::Time(HOUR)).generations(16);
    let other = Window::with_options(&options, 500, 1e-6, Hasher::seeded(7)).unwrap();
    other.save(dir.path("new.tamis")).unwrap();
    std::fs::rename(dir.path("new.tamis"), dir.path("seen.tamis")).unwrap();
    service.until("taken", || {
        service.json("/v1/filters/seen")["times_replaced"] == 1
    });
    assert_eq!(
        service.json("/v1/filters/seen")["window"]["generation_count"],
        16
    );
    assert_eq!(service.check("seen", "a\nb\nc"), "yes\nyes\nno\n");
    let log = service.end();
    assert!(!log.contains("not saved"), "{log}");
    let window = Window::load(dir.path("seen.tamis")).unwrap();
    let over = then + HOUR + HOUR / 16;
    assert!(!window.contains("a", over) && window.contains("b", over));
}

#[test]
fn times_that_are_none_are_refused() {
    let dir = hour();
    dir.ok("create plain.tamis --capacity 100");
    let service = Service::start_writing(&dir, "seen.tamis plain.tamis");
    let headers = format!("authorization: Bearer {TOKEN}\r\n");
    for (query, what) in [
        ("at=", "expected a time"),
        ("at=yesterday", "got 'yesterday'"),
        ("at=nan", "got 'nan'"),
        ("at=1e999", "got '1e999'"),
        ("at=2024-02-30", "got '2024-02-30'"),
        ("at=1700000000&at=1700000001", "given twice"),
        (
            "time=1700000000",
            "time: expected no other parameter than at",
        ),
    ] {
        for name in ["seen", "plain"] {
            for verb in ["add", "check"] {
                let line = format!("POST /v1/filters/{name}/{verb}?{query}");
                let refused = service.ask(&line, &headers, "a");
                assert_eq!(refused.status, 400, "{query}");
                let error = refused.error();
                assert!(error.contains(what), "{query}: {error}");
            }
        }
    }
    assert_eq!(service.check("seen", "a"), "no\n");
    // Times in the formats of people and programs.
    let now = Moment::now();
    let now = Moment::from_secs(now.micros() / 1_000_000);
    let (seconds, shown) = (now.micros() / 1_000_000, now.to_string());
    assert_eq!(service.add_at("t", now).text(), "new\n");
    for at in [
        shown.clone(),
        shown.replace('Z', "%2B00:00"),
        format!("{seconds}000"),
    ] {
        let line = format!("POST /v1/filters/seen/add?at={at}");
        assert_eq!(service.ask(&line, &headers, "t").text(), "known\n", "{at}");
    }
    // Kinds that never forget ignore times.
    let line = "POST /v1/filters/plain/add?at=4102444800";
    assert_eq!(service.ask(line, &headers, "a").text(), "new\n");
    assert_eq!(service.check("plain", "a"), "yes\n");
    assert_eq!(service.json("/v1/filters/plain")["window"], json!(null));
    service.end();
}

#[test]
fn the_generations_are_reported_with_their_ages() {
    let dir = hour();
    let service = Service::start_writing(&dir, "seen.tamis");
    let about = service.json("/v1/filters/seen");
    assert_eq!(about["kind"], "window");
    assert_eq!(about["writable"], true);
    let all = about["window"]["generations"].as_array().unwrap();
    assert_eq!(all.len(), 9);
    assert!(all.iter().all(|one| one["keys"] == 0));
    let then = ago(2 * BAND);
    service.add_at("a\nb\nc", then);
    service.add("seen", "d");
    let mut about = about;
    // The description may be slightly old.
    service.until("told", || {
        about = service.json("/v1/filters/seen");
        about["keys"] == 4
    });
    let window = &about["window"];
    assert_eq!(
        (&window["by"], &window["renewal"]),
        (&json!("time"), &json!("within"))
    );
    assert_eq!(
        (&window["span"], &window["band"]),
        (&json!(3_600.0), &json!(450.0))
    );
    assert_eq!(window["generation_count"], 8);
    let all = window["generations"].as_array().unwrap();
    let of = |keys| all.iter().find(|one| one["keys"] == keys).unwrap();
    let (old, new) = (of(3), of(1));
    assert_eq!(old["start"], then.to_string());
    let age = |one: &serde_json::Value| one["age"].as_f64().unwrap();
    assert!((900.0..1_350.0).contains(&age(old)), "{old}");
    assert!((0.0..450.0).contains(&age(new)), "{new}");
    service.end();
}
