//! BF.* through redis-rs and its feature `bloom`, on the server whose port is
//! the argument. The tests run it; it panics where an answer is wrong.

use redis::TypedCommands;
use redis::bloom::{
    BloomFilterDumpIterator, BloomFilterInfoType, BloomFilterInsertOptions,
    BloomFilterScalingOptions,
};

fn main() {
    let port = std::env::args().nth(1).expect("a port");
    for protocol in ["resp2", "resp3"] {
        let client = redis::Client::open(format!("redis://127.0.0.1:{port}/?protocol={protocol}"));
        let mut server = client.unwrap().get_connection().unwrap();
        server.flushall().unwrap();
        use_it(&mut server);
    }
}

fn use_it(server: &mut redis::Connection) {
    assert_eq!(server.bf_add("a", "foo"), Ok(true));
    assert_eq!(server.bf_add("a", "foo"), Ok(false));
    assert_eq!(server.bf_madd("a", &["foo", "bar"]), Ok(vec![false, true]));
    assert_eq!(server.bf_exists("a", "bar"), Ok(true));
    assert_eq!(
        server.bf_mexists("a", &["bar", "baz"]),
        Ok(vec![true, false])
    );
    assert_eq!(server.bf_card("a"), Ok(2));
    let told = server.bf_info("a").unwrap();
    assert_eq!(told.get("Number of items inserted").unwrap(), &2.0);
    assert_eq!(
        server
            .bf_info_type("a", BloomFilterInfoType::Items)
            .unwrap(),
        2.0
    );

    assert_eq!(server.bf_reserve("reserved", 0.4711, 42), Ok(()));
    assert_eq!(
        server
            .bf_info_type("reserved", BloomFilterInfoType::Capacity)
            .unwrap(),
        42.0
    );
    let again = server.bf_reserve("reserved", 0.4711, 42).unwrap_err();
    assert!(again.detail().unwrap().contains("exists"));

    let fixed = BloomFilterInsertOptions::default().capacity(2);
    let fixed = fixed.expansion(BloomFilterScalingOptions::NonScaling);
    assert_eq!(
        server.bf_insert_options("fixed", &["foo", "bar"], fixed),
        Ok(vec![true, true])
    );
    let full = server.bf_madd("fixed", &["baz"]).unwrap_err();
    assert!(full.detail().unwrap().contains("full"));
    let nothing = BloomFilterInsertOptions::default().nocreate();
    let missing = server
        .bf_insert_options("none", &["foo"], nothing)
        .unwrap_err();
    assert!(missing.detail().unwrap().contains("not found"));

    let chunks: Vec<_> = BloomFilterDumpIterator::new(server, "a")
        .map(Result::unwrap)
        .collect();
    for chunk in chunks {
        server.bf_loadchunk("copy", chunk).unwrap();
    }
    assert_eq!(
        server.bf_mexists("copy", &["foo", "bar", "baz"]),
        Ok(vec![true, true, false])
    );
    assert_eq!(server.bf_info("copy"), server.bf_info("a"));
}
