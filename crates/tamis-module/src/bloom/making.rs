//! New filters and their parameters.

use super::{Bloom, expansion_of};
use crate::error::Error;
use crate::words::FilterLayout;
use tamis::{Counting, Growing, Hasher, Window, window::WindowOptions};
use tamis_formats::redisbloom::Chain;
use tamis_formats::valkeybloom;

/// Filters with higher rates are useless; RedisBloom has the same limit.
const HIGHEST_RATE: f64 = 0.25;

/// All parameters of a new filter.
#[derive(Clone, Debug, PartialEq)]
pub struct NewBloom {
    pub rate: f64,
    pub capacity: u64,
    /// `None` is NONSCALING. 0 doesn't grow, either, and is what RedisBloom then writes.
    pub expansion: Option<u32>,
    pub counting: bool,
    pub window: Option<WindowOptions>,
    pub layout: FilterLayout,
    /// For Tamis's layout.
    pub hasher: Hasher,
    /// For valkey-bloom's layout: the seed, and the factor from each layer's rate to the next one's.
    pub seed: [u8; 32],
    pub tightening: f64,
}

impl Default for NewBloom {
    fn default() -> Self {
        Self {
            rate: 0.01,
            capacity: 100,
            expansion: Some(2),
            counting: false,
            window: None,
            layout: FilterLayout::Tamis,
            hasher: Hasher::default(),
            seed: [0; 32],
            tightening: 0.5,
        }
    }
}

impl NewBloom {
    /// An empty filter.
    pub fn make(&self) -> Result<Bloom, Error> {
        let rate = self.rate.min(HIGHEST_RATE);
        if let Some(options) = &self.window {
            let window = Window::with_options(options, self.capacity, rate, self.hasher)?;
            return Ok(Bloom::Window(window));
        }
        Ok(match self.layout {
            FilterLayout::Tamis if self.counting => {
                Bloom::Counting(Counting::with_hasher(self.capacity, rate, self.hasher)?)
            }
            FilterLayout::Valkey => Bloom::Valkey(valkeybloom::Chain::new(
                self.capacity,
                self.rate,
                self.tightening,
                self.expansion.unwrap_or(0),
                self.seed,
            )?),
            FilterLayout::Tamis => {
                let expansion = expansion_of(self.expansion.unwrap_or(0));
                Bloom::Tamis(Growing::reserve(
                    self.capacity,
                    rate,
                    expansion,
                    self.hasher,
                )?)
            }
            FilterLayout::RedisBloom => {
                Bloom::RedisBloom(Chain::new(self.capacity, rate, self.expansion)?)
            }
        })
    }
}
