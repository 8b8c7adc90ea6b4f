//! A mail server's block list with an allow list.
//!
//! A false alarm on a block list hurts someone, so those who must get through
//! (here: everyone who ever wrote to us) are on an allow list, and the filter
//! is wrong on no one of either. The block list itself, with the reasons, is
//! in SQLite and is asked only for those who seem blocked.
//!
//! ```text
//! cargo run --release --manifest-path examples/Cargo.toml --bin mail_block_list
//! ```

use rusqlite::{Connection, OptionalExtension, params};
use std::error::Error;
use tamis::{Cascade, Hasher, Ribbon, SecretKey, guard::Guard};

const BLOCKED: u32 = 200_000;
const FRIENDS: u32 = 1_000_000;
const STRANGERS: u32 = 1_000_000;
const RATE: f64 = 0.001;

fn blocked(i: u32) -> String {
    format!("offer{i}@spam{}.example", i % 977)
}

fn friend(i: u32) -> String {
    format!("friend{i}@home.example")
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut connection = Connection::open_in_memory()?;
    connection.execute_batch("CREATE TABLE blocked (sender TEXT PRIMARY KEY, reason TEXT)")?;
    let transaction = connection.transaction()?;
    {
        let mut insert = transaction.prepare("INSERT INTO blocked VALUES (?, ?)")?;
        for i in 0..BLOCKED {
            insert.execute(params![blocked(i), format!("case {i}")])?;
        }
    }
    transaction.commit()?;

    // Senders choose their addresses: hash them under a secret.
    let hasher = Hasher::keyed(SecretKey::random()?);
    let senders = (0..BLOCKED).map(blocked);
    let list = Cascade::build(senders, (0..FRIENDS).map(friend), RATE, hasher)?;
    let alone = Ribbon::build((0..BLOCKED).map(blocked), RATE, hasher)?;
    println!(
        "{BLOCKED} blocked and {FRIENDS} allowed senders: {} kB; the block list alone: {} kB",
        list.bytes() / 1000,
        alone.bytes() / 1000
    );
    let hurt = (0..FRIENDS).filter(|i| alone.contains(friend(*i))).count();
    println!("friends that the block list alone would stop: {hurt}");

    assert!((0..BLOCKED).all(|i| list.contains(blocked(i))));
    assert!(!(0..FRIENDS).any(|i| list.contains(friend(i))));
    println!("friends that the filter with the allow list stops: 0");

    let guard = Guard::new(list);
    let reason = |sender: &str| {
        guard.get(sender, || {
            let mut query =
                connection.prepare_cached("SELECT reason FROM blocked WHERE sender = ?")?;
            query
                .query_row([sender], |row| row.get::<_, String>(0))
                .optional()
        })
    };
    assert_eq!(reason(&blocked(7))?.as_deref(), Some("case 7"));
    for i in 0..STRANGERS {
        assert_eq!(reason(&format!("stranger{i}@else.example"))?, None);
    }
    println!(
        "of {STRANGERS} mails from strangers, {} needed the database ({RATE} promised)",
        guard.counts().false_alarms
    );
    Ok(())
}
