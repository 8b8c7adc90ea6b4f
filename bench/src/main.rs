use std::time::Instant;
use tamis::*;
const CHUNK: usize = 512;
fn keys(n: usize, salt: u64) -> Vec<u64> {
    let mut x = salt;
    (0..n).map(|_| { x = x.wrapping_add(0x9E3779B97F4A7C15); let mut z = x; z = (z ^ (z >> 30)).wrapping_mul(0xBF58476D1CE4E5B9); z = (z ^ (z >> 27)).wrapping_mul(0x94D049BB133111EB); z ^ (z >> 31) }).collect()
}
fn main() {
    let n: usize = std::env::args().nth(1).unwrap().parse::<f64>().unwrap() as usize;
    let hits = keys(n, 1);
    let q = n.min(20_000_000);
    let misses = keys(q, 99);
    let reps = (20_000_000 / n).max(1);
    let plan = Plan::for_size(Kind::Blocked, n as u64, n as u64 * 10 / 8).unwrap();
    println!("{plan:?}");
    for _round in 0..3 {
        let time = |name: &str, ops: usize, f: &mut dyn FnMut() -> usize| { let t = Instant::now(); let r = f(); println!("{name:30} {:6.2} ns {}", t.elapsed().as_nanos() as f64 / ops as f64, r as f64 / ops as f64) };
        let mut f = Blocked::from_plan(&plan, Hasher::default()).unwrap();
        let mut hb = [Hash::default(); CHUNK]; let mut ob = [false; CHUNK];
        time("tamis insert", n, &mut || { for c in hits.chunks(CHUNK) { for (h, k) in hb.iter_mut().zip(c) { *h = Hash::from_u64(*k) } f.insert_hashes(&hb[..c.len()], &mut ob[..c.len()]); } 0 });
        for (name, ks) in [("tamis hit", &hits[..q]), ("tamis miss", &misses[..])] {
            time(name, q * reps, &mut || { let mut s = 0; for _ in 0..reps { for c in ks.chunks(CHUNK) { for (h, k) in hb.iter_mut().zip(c) { *h = Hash::from_u64(*k) } f.contains_hashes(&hb[..c.len()], &mut ob[..c.len()]); s += ob[..c.len()].iter().filter(|b| **b).count(); } } s });
        }
        drop(f);
        let mut s = sbbf_rs_safe::Filter::new(10, n);
        time("sbbf insert", n, &mut || { for k in &hits { s.insert_hash(*k); } 0 });
        for (name, ks) in [("sbbf hit", &hits[..q]), ("sbbf miss", &misses[..])] {
            time(name, q * reps, &mut || { let mut c = 0; for _ in 0..reps { for k in ks { c += s.contains_hash(*k) as usize; } } c });
        }
        drop(s);
        let mut s = fastbloom::BloomFilter::with_num_bits(n * 10).expected_items(n);
        time("fastbloom insert", n, &mut || { for k in &hits { s.insert_hash(*k); } 0 });
        for (name, ks) in [("fast hit", &hits[..q]), ("fast miss", &misses[..])] {
            time(name, q * reps, &mut || { let mut c = 0; for _ in 0..reps { for k in ks { c += s.contains_hash(*k) as usize; } } c });
        }
    }
}
