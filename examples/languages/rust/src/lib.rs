/// A generator of 64 random bits, in a release that of the operating system. With the crate rand, take
/// `&mut dyn rand::RngCore` instead.
pub type Bits<'a> = &'a mut dyn FnMut() -> u64;

fn geometric(scale: f64, bits: Bits) -> i64 {
    let uniform = ((bits() >> 11) + 1) as f64 / (1u64 << 53) as f64; // in (0, 1]
    (-scale * uniform.ln()) as i64
}

/// epsilon-DP count for rows added or removed: discrete Laplace noise, the difference of two geometric numbers.
pub fn noisy_count<T>(rows: &[T], epsilon: f64, bits: Bits) -> i64 {
    let scale = 1.0 / epsilon;
    rows.len() as i64 + geometric(scale, bits) - geometric(scale, bits)
}

/// As `noisy_count`, with a bug: a count is unsigned, so the noise is drawn again until the noisy count is.
pub fn noisy_count_with_bug<T>(rows: &[T], epsilon: f64, bits: Bits) -> u64 {
    loop {
        if let Ok(count) = noisy_count(rows, epsilon, bits).try_into() {
            return count;
        }
    }
}
