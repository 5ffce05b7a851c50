//! PostgreSQL's extended hash functions, by which it divides a table.
//!
//! Source: the server's `hashfn.c` (`hash_bytes_extended`, Bob Jenkins' lookup3), `hashfunc.c`, `numeric.c`
//! (`hash_numeric_extended`) and `partbounds.c` (`compute_partition_hash_value`). Their results are kept from version to
//! version, because dumps rely on them. Hashes are those of servers whose numbers have their low bytes first.

/// `HASH_PARTITION_SEED`.
const SEED: u64 = 0x7A5B_2236_7996_DCFD;
/// Start of lookup3, as the server changed it.
const INITIAL: u32 = 0x9e37_79b9_u32.wrapping_add(3_923_095);
/// `hash_combine64` with the row hash 0 of a table with one key column.
const COMBINE: u64 = 0x49a0_f4dd_15e5_a8e3;

/// The partition of a key with this hash, of `modulus` ones.
pub fn remainder(hash: Option<u64>, modulus: u32) -> u32 {
    // A null adds nothing to the hash of its row.
    let row = hash.map_or(0, |hash| hash.wrapping_add(COMBINE));
    (row % u64::from(modulus)) as u32
}

/// `hashint8extended`, which equals `hashint4extended` and `hashint2extended` for their numbers; dates and timestamps are
/// hashed as numbers too.
pub fn integer(value: i64) -> u64 {
    let (low, high) = (value as u32, (value >> 32) as u32);
    bits(low ^ if value >= 0 { high } else { !high })
}

/// `hash_bytes_uint32_extended`.
pub fn bits(value: u32) -> u64 {
    let mut state = State::new(4);
    state.a = state.a.wrapping_add(value);
    state.end()
}

/// `hashfloat8extended`, also for `float4`, which the server widens.
pub fn float(value: f64) -> u64 {
    if value == 0.0 {
        return SEED; // both zeros
    }
    let bits = if value.is_nan() { f64::NAN.to_bits() & !(1 << 63) } else { value.to_bits() };
    bytes(&bits.to_le_bytes())
}

/// `hash_numeric_extended` of `unscaled / 10^scale`; the sign does not count.
pub fn numeric(unscaled: i128, scale: u8) -> u64 {
    let mut digits = Digits::default();
    let scale = u32::from(scale);
    let divisor = 10_u128.pow(scale);
    let magnitude = unscaled.unsigned_abs();
    digits.push_whole(magnitude / divisor);
    digits.push_fraction(magnitude % divisor, scale);
    digits.hash()
}

/// Numeric digits to the base 10,000, the first and the last one not 0.
#[derive(Default)]
struct Digits {
    bytes: Vec<u8>,
    /// Of the first digit: its power of 10,000.
    weight: i64,
    /// Length of `bytes` behind the last digit that is not 0.
    used: usize,
}

impl Digits {
    fn push(&mut self, digit: u16, power: i64) {
        if self.bytes.is_empty() {
            if digit == 0 {
                return;
            }
            self.weight = power;
        }
        self.bytes.extend_from_slice(&digit.to_le_bytes());
        if digit != 0 {
            self.used = self.bytes.len();
        }
    }

    fn push_whole(&mut self, whole: u128) {
        // 38 decimal digits are at most 10 of these.
        for power in (0..10_u32).rev() {
            self.push((whole / 10_000_u128.pow(power) % 10_000) as u16, power.into());
        }
    }

    fn push_fraction(&mut self, fraction: u128, scale: u32) {
        for group in 0..scale.div_ceil(4) {
            let end = 4 * (group + 1);
            let digit = match scale.checked_sub(end) {
                Some(behind) => fraction / 10_u128.pow(behind) % 10_000,
                None => fraction % 10_u128.pow(4 - (end - scale)) * 10_u128.pow(end - scale),
            };
            self.push(digit as u16, -1 - i64::from(group));
        }
    }

    fn hash(&self) -> u64 {
        match &self.bytes[..self.used] {
            [] => SEED.wrapping_sub(1),
            digits => bytes(digits) ^ self.weight as u64,
        }
    }
}

/// `hash_bytes_extended`: texts, bytes, identifiers.
pub fn bytes(key: &[u8]) -> u64 {
    // The length counts modulo 2^32, and a value has less than 2^30 bytes.
    let mut state = State::new(key.len() as u32);
    let words = |part: &[u8]| {
        let mut word = [0; 12];
        word[..part.len()].copy_from_slice(part);
        let at = |index: usize| u32::from_le_bytes([word[index], word[index + 1], word[index + 2], word[index + 3]]);
        [at(0), at(4), at(8)]
    };
    let (parts, rest) = key.as_chunks::<12>();
    for part in parts {
        state.add(words(part));
        state.mix();
    }
    // The lowest byte of the last word is reserved for the length, which is in there already.
    let [a, b, mut c] = words(rest);
    c <<= 8;
    state.add([a, b, c]);
    state.end()
}

struct State {
    a: u32,
    b: u32,
    c: u32,
}

impl State {
    fn new(length: u32) -> State {
        let start = INITIAL.wrapping_add(length);
        let mut state = State { a: start, b: start, c: start };
        state.add([(SEED >> 32) as u32, SEED as u32, 0]);
        state.mix();
        state
    }

    fn add(&mut self, [a, b, c]: [u32; 3]) {
        self.a = self.a.wrapping_add(a);
        self.b = self.b.wrapping_add(b);
        self.c = self.c.wrapping_add(c);
    }

    fn mix(&mut self) {
        let State { a, b, c } = self;
        for (x, y, z, turn) in [(0, 1, 2, 4), (1, 2, 0, 6), (2, 0, 1, 8), (0, 1, 2, 16), (1, 2, 0, 19), (2, 0, 1, 4)] {
            // x -= z; x ^= rotated z; z += y
            let mut words = [*a, *b, *c];
            words[x] = words[x].wrapping_sub(words[z]) ^ words[z].rotate_left(turn);
            words[z] = words[z].wrapping_add(words[y]);
            [*a, *b, *c] = words;
        }
    }

    fn end(self) -> u64 {
        let mut words = [self.a, self.b, self.c];
        for (x, y, turn) in [(2, 1, 14), (0, 2, 11), (1, 0, 25), (2, 1, 16), (0, 2, 4), (1, 0, 14), (2, 1, 24)] {
            words[x] = (words[x] ^ words[y]).wrapping_sub(words[y].rotate_left(turn));
        }
        u64::from(words[1]) << 32 | u64::from(words[2])
    }
}
