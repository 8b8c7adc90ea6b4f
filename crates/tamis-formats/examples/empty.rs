//! Writes an empty filter for another system to the standard output:
//!
//! ```text
//! cargo run -p tamis-formats --example empty -- guava 1000 0.01 > seen.bloom
//! ```

use std::error::Error;
use std::io::Write as _;
use tamis_formats::{Create, Optimise, Strategy};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [format, keys, rate] = &arguments[..] else {
        return Err("usage: empty FORMAT KEYS RATE".into());
    };
    let what = match format.as_str() {
        "bip37" => Create::Bip37 { tweak: 0, flags: 1 },
        "bits-and-blooms" => Create::BitsAndBlooms { json: false },
        "bloom-filters" => Create::Npm {
            seed: 0x12_3456_7890,
        },
        "dcso" => Create::Dcso,
        "guava" => Create::guava(),
        "guava-mitz32" => Create::Guava {
            strategy: Strategy::Mitz32,
            before_33_4: false,
        },
        "parquet" => Create::Parquet,
        "poppy" => Create::Poppy(Optimise::None),
        "poppy-speed" => Create::Poppy(Optimise::Speed),
        "spark" => Create::Spark { seed: None },
        "spark2" => Create::Spark { seed: Some(0) },
        _ => return Err(format!("{format} is none of this example's formats").into()),
    };
    let filter = tamis_formats::create(what, keys.parse()?, rate.parse()?)?;
    std::io::stdout().write_all(&filter.to_bytes())?;
    Ok(())
}
