//! Checks that docs/benchmarks.md, its charts and the README's picture match bench/results. The code that draws them
//! comes from bench/, without the peers, which take longer to compile than everything else here.

#![allow(unreachable_pub)] // in bench/ everything is public to the rest of the program

#[path = "../../../../bench/src/chart.rs"]
mod chart;
#[path = "../../../../bench/src/clock.rs"]
#[allow(dead_code)] // used by suites
mod clock;
#[path = "../../../../bench/src/docs.rs"]
#[allow(dead_code)] // used by suites
mod docs;
#[path = "../../../../bench/src/report.rs"]
#[allow(dead_code)]
mod report;

#[test]
fn the_page_and_its_charts_are_drawn_from_the_results() {
    docs::check().unwrap();
}
