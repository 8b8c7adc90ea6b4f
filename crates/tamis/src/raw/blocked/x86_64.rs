//! AVX2 and AVX-512 paths of the blocked filter.
//!
//! A line is tested at once: each lane fetches the word of one position from
//! the line's registers and brings its bit to the front. Keys whose positions
//! repeat are rare and are looked at afterwards.

use super::fields;
use super::scalar::{self, FIELD_BITS, FIELDS};
use crate::hash::{Hash, mix};
use crate::raw::blocked::{BlockedShape, LINE_WORDS, line};
use crate::raw::isa::{Mask, for_each_hash, for_each_hash_mut, prefetch};
use crate::raw::word::Word;
use std::arch::asm;
use std::arch::x86_64::*;

/// Keys that are asked together: a bit each in a word.
const GROUP: usize = 64;

/// Calls the function that is made for so many positions in one word.
macro_rules! by_count {
    ($count:expr, $f:ident($($arg:expr),*)) => {
        match $count {
            1 => $f::<1>($($arg),*),
            2 => $f::<2>($($arg),*),
            3 => $f::<3>($($arg),*),
            4 => $f::<4>($($arg),*),
            5 => $f::<5>($($arg),*),
            6 => $f::<6>($($arg),*),
            _ => $f::<7>($($arg),*),
        }
    };
}

/// The address of a line, of any alignment.
type Line = *mut [u64; LINE_WORDS];

/// Keys that are hashed and prefetched: which line, which word of positions.
struct Group {
    lines: [Line; GROUP],
    words: [u64; GROUP],
}

/// The group after the one at work. Its keys are hashed and prefetched in the
/// meantime, which keeps both the processor and the memory busy.
struct Ahead<'a, H> {
    shape: &'a BlockedShape,
    /// The filter's first line.
    lines: Line,
    hashes: &'a [H; GROUP],
    group: &'a mut Group,
}

impl<'a, H: Copy + Into<Hash>> Ahead<'a, H> {
    fn new(
        shape: &'a BlockedShape,
        lines: Line,
        hashes: &'a [H; GROUP],
        group: &'a mut Group,
    ) -> Self {
        Self {
            shape,
            lines,
            hashes,
            group,
        }
    }

    #[inline(always)]
    fn prepare(&mut self, i: usize) {
        let hash = self.hashes[i].into();
        let line = self.lines.wrapping_add(self.shape.first_line(hash));
        prefetch(line);
        self.group.lines[i] = line;
        self.group.words[i] = hash.lo;
    }
}

/// Calls `work` with the keys, a group at a time, and writes its answers, a
/// bit a key. `work` also prepares every key of the group ahead.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,bmi1,bmi2,popcnt")]
fn for_each_group<H: Copy + Into<Hash>>(
    shape: &BlockedShape,
    lines: Line,
    hashes: &[H],
    out: &mut [bool],
    mut work: impl FnMut(&Group, &mut Ahead<H>) -> u64,
) {
    let Some(last) = hashes.last() else { return };
    let (groups, rest) = hashes.as_chunks::<GROUP>();
    // Filled up with a key that has its turn before.
    let mut tail = [*last; GROUP];
    tail[..rest.len()].copy_from_slice(rest);

    let empty = || Group {
        lines: [lines; GROUP],
        words: [0; GROUP],
    };
    let (mut now, mut next) = (&mut empty(), &mut empty());
    let group = |g| groups.get(g).unwrap_or(&tail);
    let mut first = Ahead::new(shape, lines, group(0), now);
    (0..GROUP).for_each(|i| first.prepare(i));
    for (g, out) in out.chunks_mut(GROUP).enumerate() {
        let answers = work(now, &mut Ahead::new(shape, lines, group(g + 1), next));
        match <&mut [bool; GROUP]>::try_from(&mut *out) {
            Ok(out) => {
                let bools = _mm512_maskz_set1_epi8(answers, 1);
                // SAFETY: 64 writable bytes, each of them 0 or 1.
                unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), bools) };
            }
            Err(_) => {
                for (i, out) in out.iter_mut().enumerate() {
                    *out = answers >> i & 1 != 0;
                }
            }
        }
        std::mem::swap(&mut now, &mut next);
    }
}

/// # Safety
/// The machine has AVX-512 F, DQ and BW, BMI and POPCNT, and `words` are those
/// of the shape.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,bmi1,bmi2,popcnt")]
pub(crate) unsafe fn contains_avx512<W: Word, H: Copy + Into<Hash>>(
    shape: &BlockedShape,
    words: &[W],
    hashes: &[H],
    out: &mut [bool],
) {
    let k = shape.hashes_per_line();
    if shape.lines_per_key() != 1 || k > FIELDS {
        return contains_any_avx512(shape, words, hashes, out);
    }
    let lines = words.as_ptr().cast_mut().cast();
    let lanes = Lanes::new(k);
    for_each_group(shape, lines, hashes, out, |group, ahead| {
        // SAFETY: the group's lines are the shape's, whose words are there.
        unsafe {
            match all_set_avx512(&lanes, group, ahead) {
                0 => 0,
                found => found & !by_count!(k, wrong_avx512(&lanes, group, found)),
            }
        }
    });
}

/// By how much a word is rotated in each lane, so that its positions come to
/// the front, when all bits of a key are in one line and one word.
struct Lanes(__m512i);

impl Lanes {
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,bmi1,bmi2,popcnt")]
    fn new(count: u32) -> Self {
        // Lanes beyond the number of positions ask the first once more.
        let mut shifts = [0; 8];
        for (i, shift) in (0..count).zip(&mut shifts) {
            *shift = i64::from(i * FIELD_BITS);
        }
        // SAFETY: 64 readable bytes.
        Self(unsafe { _mm512_loadu_si512(shifts.as_ptr().cast()) })
    }
}

/// The keys whose positions are all set: each lane fetches the 32-bit word
/// of one position and brings its bit to the front. Two keys at a time,
/// one in the even lanes and one in the odd ones.
///
/// # Safety
/// The group's lines can be read.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,bmi1,bmi2,popcnt")]
unsafe fn all_set_avx512<H: Copy + Into<Hash>>(
    lanes: &Lanes,
    group: &Group,
    ahead: &mut Ahead<H>,
) -> u64 {
    const EVEN: __mmask16 = 0x5555;
    let to_even = lanes.0;
    let to_odd = _mm512_sub_epi64(to_even, _mm512_set1_epi64(32));
    let word_mask = _mm512_set1_epi32(15);
    let odd_line = _mm512_set1_epi64(16 << 32);
    let mut one = _mm512_set1_epi64(1 << 32 | 1);
    // SAFETY: no instruction. The compiler must not know the value, or it
    // makes two instructions of the test below.
    unsafe { asm!("/* {one} */", one = inout(zmm_reg) one, options(pure, nomem, nostack)) };

    // SAFETY: the caller's promise.
    let line = |i: usize| unsafe { load_line(group.lines[i]) };
    let word = |i: usize| _mm512_set1_epi64(group.words[i].cast_signed());
    let mut set = [0u16; GROUP / 2];
    for (even, set) in set.iter_mut().enumerate() {
        let odd = even + GROUP / 2;
        let positions = _mm512_mask_mov_epi32(
            _mm512_rorv_epi64(word(odd), to_odd),
            EVEN,
            _mm512_rorv_epi64(word(even), to_even),
        );
        // The permutation reads five bits: the word in the line, and which
        // line. The rotation reads five, too.
        let index = _mm512_srli_epi32::<5>(positions);
        // odd_line | (index & word_mask)
        let index = _mm512_ternarylogic_epi32::<0xf8>(odd_line, index, word_mask);
        let words = _mm512_permutex2var_epi32(line(even), index, line(odd));
        *set = _mm512_test_epi32_mask(_mm512_rorv_epi32(words, positions), one);
        ahead.prepare(even);
        ahead.prepare(odd);
    }
    // SAFETY: 64 readable bytes.
    let set = unsafe { _mm512_loadu_si512(set.as_ptr().cast()) };
    let all = |lanes: __mmask16| {
        let lanes = _mm512_set1_epi16(lanes.cast_signed());
        u64::from(_mm512_cmpeq_epi16_mask(_mm512_and_si512(set, lanes), lanes))
    };
    all(EVEN) | all(!EVEN) << 32
}

/// The keys among `found` that are not there after all: some of their
/// positions repeat, and not all that these moved to are set.
///
/// # Safety
/// The group's lines can be read.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,bmi1,bmi2,popcnt")]
unsafe fn wrong_avx512<const K: u32>(lanes: &Lanes, group: &Group, found: u64) -> u64 {
    // Of a few keys, each is looked at.
    let mut unclear = match found.count_ones() {
        0..=4 => found,
        _ => found & repeats_avx512::<K>(&group.words),
    };
    let mut wrong = 0;
    while unclear != 0 {
        let i = unclear.trailing_zeros();
        let word = fields::distinct(group.words[i as usize], K).cast_signed();
        let positions = _mm512_rorv_epi64(_mm512_set1_epi64(word), lanes.0);
        // SAFETY: the caller's promise.
        let line = unsafe { load_line(group.lines[i as usize]) };
        let words = _mm512_permutexvar_epi64(_mm512_srli_epi64::<6>(positions), line);
        let bits = _mm512_rorv_epi64(words, positions);
        let all = _mm512_test_epi64_mask(bits, _mm512_set1_epi64(1)) == 0xff;
        wrong |= u64::from(!all) << i;
        unclear &= unclear - 1;
    }
    wrong
}

/// Which keys may have a repeated position among the `K` of their word, never
/// "no" when one has: `fields::repeats`, of eight keys at a time.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,bmi1,bmi2,popcnt")]
fn repeats_avx512<const K: u32>(words: &[u64; GROUP]) -> u64 {
    let splat = |bits: u64| _mm512_set1_epi64(bits.cast_signed());
    let shift = |fields: u32| splat(u64::from(fields * FIELD_BITS));
    let low_bits = fields::low_bits(K);
    let used = splat((1 << (K * FIELD_BITS)) - 1);
    let (low, top) = (splat(low_bits), splat(low_bits << (FIELD_BITS - 1)));
    let mut repeats = 0;
    for eight in words.as_chunks::<8>().0.iter().rev() {
        // SAFETY: 64 readable bytes.
        let words = unsafe { _mm512_loadu_si512(eight.as_ptr().cast()) };
        let fields = _mm512_and_si512(words, used);
        let mut marks = _mm512_setzero_si512();
        for distance in 1..=K / 2 {
            let down = _mm512_srlv_epi64(fields, shift(distance));
            let up = _mm512_sllv_epi64(fields, shift(K - distance));
            let differ = _mm512_ternarylogic_epi64::<0x96>(fields, down, up); // xor
            let less = _mm512_sub_epi64(differ, low);
            // marks | (less & !differ)
            marks = _mm512_ternarylogic_epi64::<0xf2>(marks, differ, less);
        }
        let mut eight = u64::from(_mm512_test_epi64_mask(marks, top));
        // SAFETY: no instruction; keeps the compiler from collecting the bits
        // in a vector, which is slower.
        unsafe { asm!("/* {eight} */", eight = inout(reg) eight, options(pure, nomem, nostack)) };
        repeats = repeats << 8 | eight;
    }
    repeats
}

/// Any number of bits, in one line or two.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,bmi1,bmi2,popcnt")]
fn contains_any_avx512<W: Word, H: Copy + Into<Hash>>(
    shape: &BlockedShape,
    words: &[W],
    hashes: &[H],
    out: &mut [bool],
) {
    let k = shape.hashes_per_line();
    for_each_hash(shape, words, hashes, out, |hash| {
        let mut word = hash.lo;
        let mut answer = line_has_avx512(line(words, shape.first_line(hash)), &mut word, k);
        if answer == Answer::Yes && shape.lines_per_key() == 2 {
            answer = line_has_avx512(line(words, shape.second_line(hash)), &mut word, k);
        }
        match answer {
            Answer::Yes => true,
            Answer::No => false,
            Answer::Unclear => scalar::contains(shape, words, hash),
        }
    });
}

#[derive(Clone, Copy, PartialEq)]
enum Answer {
    Yes,
    No,
    /// A position repeats, so bits were moved.
    Unclear,
}

/// Whether all bits of a key in one line are set, for any number of them.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,bmi1,bmi2,popcnt")]
fn line_has_avx512<W: Word>(line: &[W; LINE_WORDS], word: &mut u64, hashes: u32) -> Answer {
    let (mask, repeated) = line_mask_avx512(word, hashes);
    let missing = _mm512_andnot_si512(load_words(line), mask);
    if _mm512_test_epi64_mask(missing, missing) != 0 {
        Answer::No
    } else if repeated {
        Answer::Unclear
    } else {
        Answer::Yes
    }
}

/// A key's bits in one line before repeated ones are moved, and whether there
/// are such.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,bmi1,bmi2,popcnt")]
fn line_mask_avx512(word: &mut u64, hashes: u32) -> (__m512i, bool) {
    let field_mask = _mm512_set1_epi64((1 << FIELD_BITS) - 1);
    let first_bits = _mm512_setr_epi64(0, 64, 128, 192, 256, 320, 384, 448);
    let one = _mm512_set1_epi64(1);
    let mut mask = _mm512_setzero_si512();
    let mut repeated = _mm512_setzero_si512();
    let mut left = hashes;
    loop {
        let mut fields = _mm512_set1_epi64(word.cast_signed());
        *word = mix(*word);
        for _ in 0..left.min(FIELDS) {
            // (fields & field_mask) ^ first_bits: below 64 only in the lane of
            // the position's word; the shift is empty in the other lanes.
            let in_word = _mm512_ternarylogic_epi64::<0x78>(first_bits, fields, field_mask);
            let bit = _mm512_sllv_epi64(one, in_word);
            // repeated | (mask & bit)
            repeated = _mm512_ternarylogic_epi64::<0xf8>(repeated, mask, bit);
            mask = _mm512_or_si512(mask, bit);
            fields = _mm512_srli_epi64::<FIELD_BITS>(fields);
        }
        if left <= FIELDS {
            return (mask, _mm512_test_epi64_mask(repeated, repeated) != 0);
        }
        left -= FIELDS;
    }
}

/// The words of a line, which other threads may be writing.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,bmi1,bmi2,popcnt")]
pub(crate) fn load_words<W: Word>(line: &[W; LINE_WORDS]) -> __m512i {
    // SAFETY: a line is 64 readable bytes.
    unsafe { load_line(line.as_ptr().cast_mut().cast()) }
}

/// The words of a line that other threads may be writing: the load is opaque
/// to the compiler, which then can assume nothing of it.
///
/// # Safety
/// The line can be read.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,bmi1,bmi2,popcnt")]
unsafe fn load_line(line: Line) -> __m512i {
    let out: __m512i;
    // SAFETY: the caller's promise.
    unsafe {
        asm!(
            "vmovdqu64 {out}, [{line}]",
            out = lateout(zmm_reg) out,
            line = in(reg) line,
            options(nostack, preserves_flags, readonly, pure)
        );
    }
    out
}

/// # Safety
/// As [`contains_avx512`].
#[target_feature(enable = "avx512f,avx512dq,avx512bw,bmi1,bmi2,popcnt")]
pub(crate) unsafe fn insert_avx512<H: Copy + Into<Hash>>(
    shape: &BlockedShape,
    words: &mut [u64],
    hashes: &[H],
    new: &mut [bool],
) {
    let k = shape.hashes_per_line();
    if shape.lines_per_key() != 1 || k > FIELDS {
        return insert_any_avx512(shape, words, hashes, new);
    }
    let lines = words.as_mut_ptr().cast();
    for_each_group(shape, lines, hashes, new, |group, ahead| {
        // SAFETY: the group's lines are the shape's, whose words are there.
        unsafe { by_count!(k, insert_group_avx512(group, ahead)) }
    });
}

/// Adds keys whose bits are all in one line and one word.
///
/// # Safety
/// The group's lines can be read and written by nobody else.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,bmi1,bmi2,popcnt")]
unsafe fn insert_group_avx512<const K: u32>(
    group: &Group,
    ahead: &mut Ahead<impl Copy + Into<Hash>>,
) -> u64 {
    let repeats = repeats_avx512::<K>(&group.words);
    let mut new = 0;
    for (i, line) in group.lines.iter().enumerate() {
        let mut word = group.words[i];
        if repeats >> i & 1 != 0 {
            word = fields::distinct(word, K);
        }
        let (mask, _) = line_mask_avx512(&mut word, K);
        // SAFETY: the caller's promise; words are aligned.
        new |= u64::from(set_bits_avx512(unsafe { &mut **line }, mask)) << i;
        ahead.prepare(i);
    }
    new
}

/// Any number of bits, in one line or two.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,bmi1,bmi2,popcnt")]
fn insert_any_avx512<H: Copy + Into<Hash>>(
    shape: &BlockedShape,
    words: &mut [u64],
    hashes: &[H],
    new: &mut [bool],
) {
    let k = shape.hashes_per_line();
    for_each_hash_mut(shape, words, hashes, new, |words, hash| {
        let mut word = hash.lo;
        let (first, repeated) = line_mask_avx512(&mut word, k);
        let (second, repeated_again) = match shape.lines_per_key() {
            2 => line_mask_avx512(&mut word, k),
            _ => (first, false),
        };
        if repeated || repeated_again {
            return scalar::insert_exclusive(shape, words, hash);
        }
        let lines = words.as_chunks_mut::<LINE_WORDS>().0;
        let mut new = set_bits_avx512(&mut lines[shape.first_line(hash)], first);
        if shape.lines_per_key() == 2 {
            new |= set_bits_avx512(&mut lines[shape.second_line(hash)], second);
        }
        new
    });
}

/// Sets the bits; whether one was missing.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,bmi1,bmi2,popcnt")]
fn set_bits_avx512(line: &mut [u64; LINE_WORDS], mask: __m512i) -> bool {
    // SAFETY: reads and writes the 64 bytes of `line`.
    unsafe {
        let line: *mut __m512i = line.as_mut_ptr().cast();
        let old = _mm512_loadu_si512(line);
        let missing = _mm512_andnot_si512(old, mask);
        _mm512_storeu_si512(line, _mm512_or_si512(old, mask));
        _mm512_test_epi64_mask(missing, missing) != 0
    }
}

/// # Safety
/// The machine has AVX2.
#[target_feature(enable = "avx2")]
pub(crate) unsafe fn contains_avx2<W: Word, H: Copy + Into<Hash>>(
    shape: &BlockedShape,
    words: &[W],
    hashes: &[H],
    out: &mut [bool],
) {
    let k = shape.hashes_per_line();
    for_each_hash(shape, words, hashes, out, |hash| {
        let mut word = hash.lo;
        line_has_avx2(line(words, shape.first_line(hash)), &mut word, k)
            && (shape.lines_per_key() == 1
                || line_has_avx2(line(words, shape.second_line(hash)), &mut word, k))
            // Positions that repeat were moved; asked only when all are set.
            && (!may_repeat(shape, hash) || scalar::contains(shape, words, hash))
    });
}

/// # Safety
/// The machine has AVX-512 F, DQ and BW.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,bmi1,bmi2,popcnt")]
pub(crate) unsafe fn line_masks_avx512(
    hashes_per_line: u32,
    nth: u32,
    who: &[u8],
    hashes: &[Hash],
    masks: &mut [Mask],
) {
    for &i in who {
        let hash = hashes[usize::from(i)];
        let mut word = scalar::nth_word(hash, nth, hashes_per_line);
        let (bits, repeated) = line_mask_avx512(&mut word, hashes_per_line);
        let mask = &mut masks[usize::from(i)];
        if repeated {
            *mask = Mask(scalar::nth_line_mask(hash, nth, hashes_per_line));
        } else {
            // SAFETY: 64 writable bytes.
            unsafe { _mm512_storeu_si512(mask.0.as_mut_ptr().cast(), bits) };
        }
    }
}

/// # Safety
/// The machine has AVX-512 F, DQ and BW.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,bmi1,bmi2,popcnt")]
pub(crate) unsafe fn matching_avx512<W: Word>(
    words: &[W],
    who: &[u8],
    at: &[usize],
    masks: &[Mask],
    hits: &mut [u8],
) -> usize {
    let mut found = 0;
    for &i in who {
        // SAFETY: 64 readable bytes.
        let bits = unsafe { _mm512_loadu_si512(masks[usize::from(i)].0.as_ptr().cast()) };
        let line = load_words(line(words, at[usize::from(i)]));
        let missing = _mm512_andnot_si512(line, bits);
        hits[found] = i;
        found += usize::from(_mm512_test_epi64_mask(missing, missing) == 0);
    }
    found
}

/// Whether a position may repeat in one of the key's lines: never "no" when
/// one does.
#[inline]
fn may_repeat(shape: &BlockedShape, hash: Hash) -> bool {
    let k = shape.hashes_per_line();
    (0..shape.lines_per_key()).any(|nth| scalar::may_repeat(scalar::nth_word(hash, nth, k), k))
}

/// Whether the positions of one line, not yet moved, are all set.
#[target_feature(enable = "avx2")]
fn line_has_avx2<W: Word>(line: &[W; LINE_WORDS], word: &mut u64, hashes: u32) -> bool {
    const F: i64 = FIELD_BITS as i64;
    let low: __m256i;
    let high: __m256i;
    // SAFETY: reads the 64 bytes of `line`, of any alignment. Opaque to the
    // compiler because other threads may be writing the line.
    unsafe {
        asm!(
            "vmovdqu {low}, [{line}]",
            "vmovdqu {high}, [{line} + 32]",
            low = out(ymm_reg) low,
            high = lateout(ymm_reg) high,
            line = in(reg) line.as_ptr(),
            options(nostack, preserves_flags, readonly, pure)
        );
    }
    let mut left = hashes;
    loop {
        let all = _mm256_set1_epi64x(word.cast_signed());
        *word = mix(*word);
        // Fields 0..4 and 4..7 in 64-bit lanes, packed to eight 32-bit lanes:
        // 0 1 4 5 2 3 6 and, in the last lane, field 6 once more.
        let first = _mm256_srlv_epi64(all, _mm256_setr_epi64x(0, F, 2 * F, 3 * F));
        let second = _mm256_srlv_epi64(all, _mm256_setr_epi64x(4 * F, 5 * F, 6 * F, 6 * F));
        let fields = _mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(
            _mm256_castsi256_ps(first),
            _mm256_castsi256_ps(second),
        ));
        // The 32-bit word of each position: three bits choose within a half,
        // the fourth (moved to the sign) chooses the half.
        let index = _mm256_srli_epi32::<5>(fields);
        let word32 = _mm256_blendv_ps(
            _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(low, index)),
            _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(high, index)),
            _mm256_castsi256_ps(_mm256_slli_epi32::<23>(fields)),
        );
        let in_word = _mm256_and_si256(fields, _mm256_set1_epi32(31));
        // The position's bit to the sign: shift left by 31 - its number.
        let to_sign = _mm256_sub_epi32(_mm256_set1_epi32(31), in_word);
        let set = _mm256_sllv_epi32(_mm256_castps_si256(word32), to_sign);
        let set = _mm256_movemask_ps(_mm256_castsi256_ps(set)) as u8;
        // Lanes in the order of the packing above.
        const LANES: [u8; 8] = [
            0,
            0b0000_0001,
            0b0000_0011,
            0b0001_0011,
            0b0011_0011,
            0b0011_0111,
            0b0011_1111,
            0b0111_1111,
        ];
        let wanted = LANES[left.min(FIELDS) as usize];
        if set & wanted != wanted {
            return false;
        }
        if left <= FIELDS {
            return true;
        }
        left -= FIELDS;
    }
}
