//! Bit strings that programs set with SETBIT, in Redis or copied from it. The user has to name their hash.

use crate::foreign::{self, Encoding, ForeignArgs, HashArg, KeyBytes};
use crate::location::{KeyFile, Place, in_redis};
use crate::output;
use crate::stream::Run;
use anyhow::{Context, Result, bail};
use tamis_formats::{BitmapShape, Foreign, Format};
use tamis_redis::{BitString, Location};

/// A bit string to query.
pub(crate) struct Bitmap {
    shape: BitmapShape,
    bits: Bits,
    /// Whether we warned about a key with a negative bit.
    warned: bool,
}

enum Bits {
    File(Box<Foreign<'static>>),
    Redis(Box<BitString>, Location),
}

impl ForeignArgs {
    /// Whether `--format bitmap` was given: the bytes alone don't show it.
    pub(crate) fn is_bitmap(&self) -> bool {
        self.format() == Some(Format::Bitmap)
    }

    /// The hash, the number of hashes and the size.
    fn bitmap_shape(&self) -> Result<BitmapShape> {
        const HINT: &str = "hint: --format bitmap,hash=guava,hashes=K,bits=M, or guava32, java-seeds:5,7,11 \
                            or java-spread:1,6,16 (without hashes=), as the program that set the bits has them";
        let given = self.given.as_ref().context("--format")?;
        let Some(HashArg::Bitmap(hash)) = &given.hash else {
            bail!("a bitmap does not say how its keys became bits\n{HINT}");
        };
        let Some(bits) = given.bits else {
            bail!("a bitmap does not say how many bits its program counts on\n{HINT}");
        };
        let shape =
            BitmapShape::new(hash.clone(), given.hashes, bits).with_context(|| HINT.to_owned())?;
        Ok(if given.is_low_first {
            shape.low_first()
        } else {
            shape
        })
    }
}

impl Bitmap {
    /// Opens a bit string from a file or Redis; also returns how its keys become bytes.
    pub(crate) fn open(
        place: &Place,
        args: &ForeignArgs,
        input: &Run,
        key: &KeyFile,
    ) -> Result<(Self, Encoding)> {
        foreign::check_rule(input)?;
        let shape = args.bitmap_shape()?;
        let encoding = Encoding::of(Format::Bitmap, shape.keys(), args.keys())?;
        let shape = shape.of_keys(encoding.0);
        let bits = match place {
            Place::File(path) => {
                let bytes = foreign::map(path, &foreign::regular(path)?)?.to_vec();
                // SETBIT never leaves an empty string. A failed copy does, and it would deny every key.
                if bytes.is_empty() {
                    bail!(
                        "{}: expected a string of bits, got an empty file",
                        path.display()
                    );
                }
                let filter = tamis_formats::bitmap(&bytes, &shape);
                Bits::File(Box::new(filter.map_err(foreign::named(path))?))
            }
            Place::Redis(at) => {
                let bits = BitString::plain(at, &key.redis_options()?);
                Bits::Redis(Box::new(bits.map_err(in_redis(at))?), at.clone())
            }
        };
        let warned = false;
        let bitmap = Self {
            shape,
            bits,
            warned,
        };
        Ok((bitmap, encoding))
    }

    pub(crate) fn ask(&mut self, keys: &[KeyBytes], found: &mut [bool]) -> Result<()> {
        found.fill(false);
        let (mut asked, mut places) = (Vec::new(), Vec::new());
        for (at, key) in keys.iter().enumerate() {
            match self.shape.bits(key.get()?) {
                Some(bits) => {
                    asked.push(bits);
                    places.push(at);
                }
                None => self.warn(),
            }
        }
        match &mut self.bits {
            Bits::File(filter) => {
                for at in places {
                    found[at] = filter.contains(keys[at].get()?);
                }
            }
            Bits::Redis(string, at) => {
                let answers = string.get(&asked).map_err(in_redis(at))?;
                for (place, answer) in places.into_iter().zip(answers) {
                    found[place] = answer;
                }
            }
        }
        Ok(())
    }

    /// Explains once why some keys are reported absent.
    fn warn(&mut self) {
        if !std::mem::replace(&mut self.warned, true) {
            output::warn(
                "some keys have a negative bit by this hash: SETBIT refuses it, so they were \
                 never added as a whole, and are absent",
            );
        }
    }
}

/// The bytes of a bitmap, from a file or from Redis.
pub(crate) fn read(place: &Place, key: &KeyFile) -> Result<Vec<u8>> {
    match place {
        Place::File(path) => Ok(foreign::map(path, &foreign::regular(path)?)?.to_vec()),
        Place::Redis(at) => {
            let options = key.redis_options()?;
            let read = BitString::plain(at, &options).and_then(|mut bits| bits.read());
            read.map_err(in_redis(at))
        }
    }
}
