//! Many crawlers share one filter: each URL is fetched by one of them.
//!
//! ```text
//! cargo run -p tamis-redis --example crawler -- redis://127.0.0.1:6379/0/seen < urls.txt
//! ```
//!
//! Start as many as you like, on as many machines; the first creates the
//! filter. Prints the URLs to fetch.

use tamis::{Hasher, Kind, Plan};
use tamis_redis::{Error, Location, Options, RedisFilter};

#[allow(dead_code)] // a test runs `crawl`
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let at = std::env::args()
        .nth(1)
        .ok_or("usage: crawler LOCATION < urls.txt")?;
    let mut urls = std::io::stdin().lines().map_while(Result::ok);
    crawl(&at.parse()?, &Options::new(), &mut urls, |url| {
        println!("{url}")
    })?;
    Ok(())
}

/// Passes `fetch` the URLs that no crawler has got before.
pub(crate) fn crawl(
    at: &Location,
    options: &Options,
    urls: &mut impl Iterator<Item = String>,
    mut fetch: impl FnMut(&str),
) -> Result<(), Error> {
    let mut seen = open_or_create(at, options)?;
    loop {
        // Batches are much faster than single keys.
        let batch: Vec<String> = urls.take(1_000).collect();
        if batch.is_empty() {
            return Ok(());
        }
        let mut new = vec![false; batch.len()];
        let mut open: Vec<usize> = Vec::new();
        match seen.insert_many(&batch, &mut new) {
            Ok(()) => {}
            // All other answers are valid.
            Err(Error::Unconfirmed { keys, .. }) => open = keys,
            Err(error) => return Err(error),
        }
        for (url, _) in batch.iter().zip(&new).filter(|(_, new)| **new) {
            fetch(url);
        }
        // These may have been added, but no crawler got the answer "new".
        // Adding them again until that is confirmed counts them as new: a page
        // may be fetched twice, but none is missed.
        while !open.is_empty() {
            eprintln!("{} URLs are not confirmed, adding them again", open.len());
            let again: Vec<&str> = open.iter().map(|i| batch[*i].as_str()).collect();
            let mut new = vec![false; again.len()];
            let still = match seen.insert_many(&again, &mut new) {
                Ok(()) => Vec::new(),
                Err(Error::Unconfirmed { keys, .. }) => keys,
                Err(error) => return Err(error),
            };
            for (i, url) in again.iter().enumerate() {
                if !still.contains(&i) {
                    fetch(url);
                }
            }
            open = still.into_iter().map(|i| open[i]).collect();
        }
    }
}

/// Opens the filter, or creates it if this is the first crawler.
fn open_or_create(at: &Location, options: &Options) -> Result<RedisFilter, Error> {
    // A URL that wrongly seems old is never fetched, so allow one in a million.
    let plan = Plan::one_line(Kind::Blocked, 10_000_000, 1e-6)?;
    match RedisFilter::create(at, &plan, Hasher::default(), options) {
        Err(Error::Exists { .. }) => RedisFilter::open(at, options),
        created => created,
    }
}
