use super::*;

fn options(rate: f64) -> IndexOptions {
    IndexOptions::new(rate).unwrap()
}

fn filters(options: &IndexOptions, keys: impl IntoIterator<Item = u64>) -> EntryFilters {
    let mut all = EntryKeys::new(options);
    for key in keys {
        all.add_hash(0, Hash::from_u64(key));
    }
    all.build().unwrap()
}

#[test]
fn never_a_false_no() {
    for rate in [0.5, 0.1, 0.01, 0.003] {
        let options = options(rate);
        let mut builder = IndexBuilder::in_memory(&options);
        let sizes: Vec<u64> = (0..=200)
            .chain([1000, 5999, 6000, 20_000, 150_000])
            .collect();
        for (entry, size) in sizes.iter().enumerate() {
            let keys = (0..*size).map(|i| (entry as u64) << 32 | i);
            builder
                .add(entry.to_string(), None, &filters(&options, keys))
                .unwrap();
        }
        let index = builder.finish().unwrap();
        let index = FileIndex::from_bytes(index.to_bytes()).unwrap();
        index.verify().unwrap();
        let spec = index.specs().next().unwrap();
        for (entry, size) in sizes.iter().enumerate() {
            for i in (0..*size).step_by(1 + *size as usize / 300) {
                let found = spec.candidates_hash(Hash::from_u64((entry as u64) << 32 | i));
                assert!(
                    found.iter().any(|e| e.number() == entry),
                    "{rate} {size} {i}"
                );
            }
        }
        let mut yes = 0;
        for i in 0..1000u64 {
            yes += spec.candidates_hash(Hash::from_u64(1 << 60 | i)).len();
        }
        println!("{rate}: {}", yes as f64 / 1000.0 / (sizes.len() - 1) as f64);
    }
}

#[test]
fn sizes() {
    for rate in [0.1, 0.05, 0.01, 0.003] {
        let options = options(rate);
        for n in [
            1u64, 3, 10, 50, 64, 65, 100, 128, 200, 300, 500, 1000, 2000, 4000, 5999, 6000, 10_000,
            30_000, 100_000, 1_000_000,
        ] {
            let mut builder = IndexBuilder::in_memory(&options);
            let reps = (20_000 / n).clamp(1, 100);
            let t = std::time::Instant::now();
            for rep in 0..reps {
                builder
                    .add("", None, &filters(&options, (0..n).map(|i| rep << 40 | i)))
                    .unwrap();
            }
            let t = t.elapsed();
            let index = builder.finish().unwrap();
            let info = index.info();
            let per = |bytes: u64| bytes as f64 * 8.0 / (n * reps) as f64;
            println!(
                "{rate} n {n}: filter {:.3} bits, {:.4}x, all {:.3}; {:.0} ns/key",
                per(info.filter_bytes),
                per(info.filter_bytes) / (1.0 / rate).log2(),
                per(info.bytes()),
                t.as_nanos() as f64 / (n * reps) as f64
            );
        }
    }
}
