//! A flood of keys that don't exist, as a broken client or an attacker sends
//! it: every one of them misses the cache and reaches the database.
//!
//! Prints how many queries reach SQLite without a guard and with one, the
//! first time and the second.
//!
//! ```text
//! cargo run --release --manifest-path examples/Cargo.toml --bin cache_penetration
//! ```

use rusqlite::{Connection, OptionalExtension, params};
use std::cell::Cell;
use std::error::Error;
use std::time::Instant;
use tamis::{Blocked, guard::Guard};

const USERS: u32 = 1_000_000;
const LOOKUPS: u32 = 1_000_000;

/// The store, which counts the queries that reach it.
struct Database {
    connection: Connection,
    queries: Cell<u64>,
}

impl Database {
    fn new() -> rusqlite::Result<Self> {
        let mut connection = Connection::open_in_memory()?;
        connection.execute_batch("CREATE TABLE users (name TEXT PRIMARY KEY, id INTEGER)")?;
        let transaction = connection.transaction()?;
        {
            let mut insert = transaction.prepare("INSERT INTO users VALUES (?, ?)")?;
            for id in 0..USERS {
                insert.execute(params![format!("user{id}"), id])?;
            }
        }
        transaction.commit()?;
        Ok(Self {
            connection,
            queries: Cell::new(0),
        })
    }

    fn find(&self, name: &str) -> rusqlite::Result<Option<u32>> {
        self.queries.set(self.queries.get() + 1);
        let mut query = (self.connection).prepare_cached("SELECT id FROM users WHERE name = ?")?;
        query.query_row([name], |row| row.get(0)).optional()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let database = Database::new()?;
    let filter = Blocked::new(USERS.into(), 0.01)?;
    let mut names = database.connection.prepare("SELECT name FROM users")?;
    let mut rows = names.query([])?;
    while let Some(row) = rows.next()? {
        filter.insert(row.get_ref(0)?.as_str()?);
    }
    println!(
        "{USERS} users; the filter of their names takes {} kB and promises 1 %",
        filter.bytes() / 1000
    );
    let guard = Guard::new(filter);
    let guarded = |name: &str| guard.get(name, || database.find(name));

    // Nobody who exists is turned away.
    for id in (0..USERS).step_by(97) {
        assert_eq!(guarded(&format!("user{id}"))?, Some(id));
    }

    println!("\n{LOOKUPS} look-ups of names that don't exist:");
    type Find<'a> = &'a dyn Fn(&str) -> rusqlite::Result<Option<u32>>;
    let report = |what: &str, find: Find<'_>| -> rusqlite::Result<u64> {
        database.queries.set(0);
        let start = Instant::now();
        for i in 0..LOOKUPS {
            assert_eq!(find(&format!("nobody{i}"))?, None);
        }
        let reached = database.queries.get();
        println!(
            "{what:<27} {reached:>9} reach the database ({:.2} %), {:>5} ms",
            reached as f64 / f64::from(LOOKUPS) * 100.0,
            start.elapsed().as_millis()
        );
        Ok(reached)
    };
    let without = report("without a guard", &|name| database.find(name))?;
    let first = report("with a guard, first time", &guarded)?;
    let second = report("with a guard, second time", &guarded)?;
    println!("\n{:?}", guard.counts());
    assert_eq!(without, LOOKUPS.into());
    assert!(
        first <= u64::from(LOOKUPS) * 12 / 1000,
        "the promise is 1 %"
    );
    assert_eq!(second, 0, "a known false alarm costs nothing");

    // Whoever signs up is known at once, even if the name was a false alarm.
    let connection = &database.connection;
    connection.execute("INSERT INTO users VALUES ('nobody7', 7)", [])?;
    guard.insert("nobody7")?;
    assert_eq!(guarded("nobody7")?, Some(7));
    Ok(())
}
