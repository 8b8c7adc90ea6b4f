mod clk {
    #[derive(Clone, Copy)]
    pub struct Instant(f64);
    fn now() -> f64 {
        let mut t = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
        t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
    }
    impl Instant {
        pub fn now() -> Self {
            Self(now())
        }
        pub fn elapsed(&self) -> std::time::Duration {
            std::time::Duration::from_secs_f64(now() - self.0)
        }
    }
}
use clk::Instant;
use tamis::*;
fn main() {
    let n: u64 = std::env::args().nth(1).unwrap().parse::<f64>().unwrap() as u64;
    let p: f64 = std::env::args().nth(2).unwrap().parse().unwrap();
    let mut c = Counting::new(n, p).unwrap();
    let mut b = Blocked::new(n, p).unwrap();
    let mut h = vec![Hash::default(); 4096];
    let mut o = vec![false; 4096];
    let fill = |h: &mut Vec<Hash>, at: u64| {
        for (i, x) in h.iter_mut().enumerate() {
            *x = Hash::from_u64((at + i as u64).wrapping_mul(0x9E3779B97F4A7C15));
        }
    };
    let (mut ti, mut tb) = (0.0, 0.0);
    let mut m = 0;
    while m < n {
        fill(&mut h, m);
        let t = Instant::now();
        c.insert_hashes(&h, &mut o);
        ti += t.elapsed().as_secs_f64();
        let t = Instant::now();
        b.insert_hashes(&h, &mut o);
        tb += t.elapsed().as_secs_f64();
        m += 4096;
    }
    println!(
        "n {n} p {p} insert: counting {:.1} blocked {:.1} ns",
        ti * 1e9 / m as f64,
        tb * 1e9 / m as f64
    );
    for (name, off) in [("hit", 0u64), ("miss", 1 << 40)] {
        let mut r = vec![];
        let (mut cs, mut bs) = (vec![], vec![]);
        for round in 0..15 {
            let (mut x, mut y, mut k) = (0.0, 0.0, 0u64);
            let mut at = round * 200_000 % n.max(1);
            while k < 1_000_000 {
                fill(&mut h, at % (n.saturating_sub(4096)).max(1) + off);
                let t = Instant::now();
                c.contains_hashes(&h, &mut o);
                x += t.elapsed().as_secs_f64();
                let t = Instant::now();
                b.contains_hashes(&h, &mut o);
                y += t.elapsed().as_secs_f64();
                k += 4096;
                at += 4096;
            }
            r.push(x / y);
            cs.push(x * 1e9 / k as f64);
            bs.push(y * 1e9 / k as f64);
        }
        for v in [&mut r, &mut cs, &mut bs] {
            v.sort_by(f64::total_cmp);
        }
        println!(
            "  {name}: counting {:.1} blocked {:.1} ratio {:.2}",
            cs[7], bs[7], r[7]
        );
        // single
        let mut s = [0.0; 2];
        let mut cnt = 0;
        let mut k = 0u64;
        while k < 2_000_000 {
            fill(&mut h, k % (n.saturating_sub(4096)).max(1) + off);
            let t = Instant::now();
            for x in &h {
                cnt += c.contains_hash(*x) as u64;
            }
            s[0] += t.elapsed().as_secs_f64();
            let t = Instant::now();
            for x in &h {
                cnt += b.contains_hash(*x) as u64;
            }
            s[1] += t.elapsed().as_secs_f64();
            k += 4096;
        }
        println!(
            "     single: counting {:.1} blocked {:.1} ({cnt})",
            s[0] * 1e9 / k as f64,
            s[1] * 1e9 / k as f64
        );
    }
}
