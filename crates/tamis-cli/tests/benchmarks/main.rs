//! docs/benchmarks.md, its charts and README's picture are what bench/results says. The code that draws them is that of
//! bench/, without the peers, whose compilation takes longer than all else here.

#![allow(unreachable_pub)] // in bench/ all of a program is public to the rest of it

#[path = "../../../../bench/src/chart.rs"]
mod chart;
#[path = "../../../../bench/src/clock.rs"]
#[allow(dead_code)] // suites measure with it
mod clock;
#[path = "../../../../bench/src/docs.rs"]
#[allow(dead_code)] // suites write with it
mod docs;
#[path = "../../../../bench/src/report.rs"]
#[allow(dead_code)]
mod report;

#[test]
fn the_page_and_its_charts_are_drawn_from_the_results() {
    docs::check().unwrap();
}
