use tamis::*;
fn main() {
    for r in [
        0.5, 0.2, 0.1, 0.05, 0.03, 0.01, 3e-3, 1e-3, 9.9e-4, 5e-4, 1e-4, 1e-5, 1e-6, 1e-9, 1e-12,
    ] {
        for n in [10_000u64, 1_000_000, 10_000_000] {
            let b = Plan::for_rate(Kind::Blocked, n, r).unwrap();
            let c = Plan::for_rate(Kind::Counting, n, r).unwrap();
            let k = Plan::for_rate(Kind::Cuckoo, n, r).unwrap();
            println!(
                "{r:e} {n} blocked {:.3} counting {:.3} = {:.3}x {:?} | cuckoo {:.2} {:?}",
                b.bits_per_key(),
                c.bits_per_key(),
                c.bits_per_key() / b.bits_per_key(),
                (match c.shape() {
                    Shape::Counting(s) => (s.hashes_per_line(), s.lines_per_key()),
                    _ => (0, 0),
                }),
                k.bits_per_key(),
                match k.shape() {
                    Shape::Cuckoo(s) => (s.window(), s.width(), s.slots()),
                    _ => (0, 0, 0),
                }
            );
        }
    }
}
