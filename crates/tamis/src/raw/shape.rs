//! The geometry of every kind, as one type: stored in a header, computed by a plan.

use super::blocked::BlockedShape;
use super::bloom::BloomShape;
use super::cascade::CascadeShape;
use super::counting::CountingShape;
use super::cuckoo::CuckooShape;
use super::fuse::FuseShape;
use super::layers::GrowingShape;
use super::layout::Layout;
use super::ribbon::RibbonShape;
use super::window::WindowShape;
use crate::error::Error;
use crate::kind::Kind;

/// The geometry of a filter: everything its kernels need besides the body.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Shape {
    /// See [`BloomShape`].
    Bloom(BloomShape),
    /// See [`BlockedShape`].
    Blocked(BlockedShape),
    /// See [`CountingShape`].
    Counting(CountingShape),
    /// See [`CuckooShape`].
    Cuckoo(CuckooShape),
    /// See [`GrowingShape`].
    Growing(GrowingShape),
    /// See [`FuseShape`].
    Fuse(FuseShape),
    /// See [`RibbonShape`].
    Ribbon(RibbonShape),
    /// See [`CascadeShape`].
    Cascade(CascadeShape),
    /// See [`WindowShape`].
    Window(WindowShape),
}

/// A kind whose geometry is one of the shapes.
#[doc(hidden)]
pub trait Shaped: Layout + Into<Shape> + TryFrom<Shape, Error = Error> {}

impl<L: Layout + Into<Shape> + TryFrom<Shape, Error = Error>> Shaped for L {}

impl Shape {
    /// The kind of filter with this shape.
    #[inline]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Bloom(_) => Kind::Bloom,
            Self::Blocked(_) => Kind::Blocked,
            Self::Counting(_) => Kind::Counting,
            Self::Cuckoo(_) => Kind::Cuckoo,
            Self::Growing(_) => Kind::Growing,
            Self::Fuse(_) => Kind::Fuse,
            Self::Ribbon(_) => Kind::Ribbon,
            Self::Cascade(_) => Kind::Cascade,
            Self::Window(_) => Kind::Window,
        }
    }

    /// The body's length in bytes, which every decoder compares with the file
    /// before it allocates.
    pub const fn body_len(&self) -> u64 {
        match self {
            Self::Bloom(shape) => shape.body_len(),
            Self::Blocked(shape) => shape.body_len(),
            Self::Counting(shape) => shape.body_len(),
            Self::Cuckoo(shape) => shape.body_len(),
            Self::Growing(shape) => shape.body_len(),
            Self::Fuse(shape) => shape.body_len(),
            Self::Ribbon(shape) => shape.body_len(),
            Self::Cascade(shape) => shape.body_len(),
            Self::Window(shape) => shape.body_len(),
        }
    }

    /// A size, two half-words, and a word whose meaning depends on the kind.
    pub(crate) fn encode(&self) -> (u64, u32, u32, u64) {
        match self {
            Self::Bloom(s) => (s.bits(), s.hashes(), 0, 0),
            Self::Blocked(s) => (s.lines(), s.hashes_per_line(), s.lines_per_key(), 0),
            Self::Counting(s) => (s.lines(), s.hashes_per_line(), s.lines_per_key(), 0),
            Self::Cuckoo(s) => (s.slots(), s.window(), s.width(), 0),
            Self::Growing(s) => (
                s.lines(),
                s.hashes_per_line(),
                s.lines_per_key(),
                s.layers().into(),
            ),
            Self::Fuse(s) => (
                s.blocks().into(),
                s.window(),
                s.width() | s.shard_bits() << 8,
                0,
            ),
            Self::Ribbon(s) => {
                let [size, middle, c] = s.encode();
                (size, middle as u32, (middle >> 32) as u32, c)
            }
            Self::Cascade(s) => (s.lines(), 0, 0, 0),
            Self::Window(s) => s.encode(),
        }
    }

    pub(crate) fn decode(kind: Kind, size: u64, a: u32, b: u32, c: u64) -> Result<Self, Error> {
        let unused = |what, value: u64| match value {
            0 => Ok(()),
            _ => Err(Error::corrupt(what, 0, value)),
        };
        if !matches!(kind, Kind::Growing | Kind::Ribbon | Kind::Window) {
            unused("third shape word", c)?;
        }
        match kind {
            Kind::Bloom => {
                unused("second half of the second shape word", b.into())?;
                BloomShape::new(size, a).map(Self::Bloom)
            }
            Kind::Blocked => BlockedShape::new(size, a, b).map(Self::Blocked),
            Kind::Counting => CountingShape::new(size, a, b).map(Self::Counting),
            Kind::Cuckoo => CuckooShape::new(size, a, b).map(Self::Cuckoo),
            Kind::Growing => GrowingShape::new(size, a, b, c).map(Self::Growing),
            Kind::Fuse => {
                let blocks = u32::try_from(size).unwrap_or(u32::MAX);
                FuseShape::new(b & 0xFF, b >> 8, blocks, a).map(Self::Fuse)
            }
            Kind::Ribbon => {
                let middle = u64::from(a) | u64::from(b) << 32;
                RibbonShape::decode([size, middle, c]).map(Self::Ribbon)
            }
            Kind::Cascade => {
                unused("second shape word", u64::from(a) | u64::from(b))?;
                CascadeShape::of_lines(size).map(Self::Cascade)
            }
            Kind::Window => WindowShape::decode(size, a, b, c).map(Self::Window),
        }
        .map_err(|e| match e {
            Error::Parameter {
                what,
                expected,
                got,
            } => Error::corrupt(what, expected, got),
            e => e,
        })
    }
}

/// Converts each kind's shape to `Shape`, and back if the kind matches.
macro_rules! conversions {
    ($($kind:ident($shape:ty)),*) => {$(
        impl From<$shape> for Shape {
            fn from(shape: $shape) -> Self {
                Self::$kind(shape)
            }
        }

        impl TryFrom<Shape> for $shape {
            type Error = Error;

            fn try_from(shape: Shape) -> Result<Self, Error> {
                match shape {
                    Shape::$kind(shape) => Ok(shape),
                    other => Err(Error::WrongKind {
                        expected: Kind::$kind,
                        got: other.kind(),
                    }),
                }
            }
        }
    )*};
}

conversions!(
    Bloom(BloomShape),
    Blocked(BlockedShape),
    Counting(CountingShape),
    Cuckoo(CuckooShape),
    Growing(GrowingShape),
    Fuse(FuseShape),
    Ribbon(RibbonShape),
    Cascade(CascadeShape),
    Window(WindowShape)
);
