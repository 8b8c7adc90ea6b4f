//! The example in docs/sharing.md does what the page says.

use crate::example::crawl;
use crate::*;
use std::collections::HashMap;
use std::sync::Mutex;

/// Three crawlers with overlapping lists start at once: each URL is fetched by
/// one of them.
#[test]
fn each_page_is_fetched_once() {
    let place = at(server(), "crawl");
    let fetched = Mutex::new(HashMap::<String, usize>::new());
    std::thread::scope(|scope| {
        for crawler in 0..3u64 {
            let (place, fetched) = (&place, &fetched);
            scope.spawn(move || {
                let mut urls = keys(crawler * 5_000..crawler * 5_000 + 10_000).into_iter();
                crawl(place, &options(), &mut urls, |url| {
                    *fetched.lock().unwrap().entry(url.into()).or_default() += 1;
                })
                .unwrap();
            });
        }
    });
    let fetched = fetched.into_inner().unwrap();
    assert_eq!(fetched.len(), 20_000);
    assert!(fetched.values().all(|times| *times == 1));
    RedisFilter::open(&place, &options())
        .unwrap()
        .delete()
        .unwrap();
}

/// The server is down for a while: pages may be fetched twice, but none is
/// missed.
#[test]
fn no_page_is_missed_when_the_server_stands_still() {
    let server = common::Server::start(&[]);
    let place = at(&server, "crawl");
    // Shorter than the server's pause, so that some answers are lost.
    let options = impatient().retry_for(Duration::ZERO);
    let mut times = HashMap::<String, usize>::new();
    std::thread::scope(|scope| {
        let mut urls = keys(0..20_000).into_iter();
        let (frozen, froze) = std::sync::mpsc::channel();
        let server = &server;
        scope.spawn(move || {
            froze.recv().unwrap();
            server.freeze();
            std::thread::sleep(Duration::from_secs(3));
            server.thaw();
        });
        crawl(&place, &options, &mut urls, |url| {
            *times.entry(url.into()).or_default() += 1;
            if times.len() == 5_000 {
                frozen.send(()).unwrap();
            }
        })
        .unwrap();
    });
    assert_eq!(times.len(), 20_000);
}
