//! Answers requests of dpaudit:  target/debug/audit noisy_count
//!
//! Copy this file, and name your mechanisms in `main`. Each takes a dataset and a generator, and returns a number.
use count::{noisy_count, noisy_count_with_bug, Bits};
use std::io::{stdin, stdout, Write};

fn main() -> std::io::Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("noisy_count") => answer(|rows, bits| noisy_count(rows, 0.7, bits) as f64),
        Some("noisy_count_with_bug") => {
            answer(|rows, bits| noisy_count_with_bug(rows, 0.7, bits) as f64)
        }
        name => panic!("no mechanism is named {name:?}"),
    }
}

/// A request is `{"runs": 1000, "seed": 7, "dataset": [1, 2, 3]}`. With its seed, an audit can be repeated. A mechanism
/// that ignores `bits` and draws from the operating system can be audited as well.
fn answer(mechanism: impl Fn(&[f64], Bits) -> f64) -> std::io::Result<()> {
    for request in stdin().lines() {
        let request = request?;
        // Enough for a list of numbers. Read other datasets with serde_json.
        let words: Vec<&str> = request
            .split(|c| " {}[],:\"".contains(c))
            .filter(|word| !word.is_empty())
            .collect();
        let (runs, seed): (usize, u64) = (words[1].parse().unwrap(), words[3].parse().unwrap());
        let dataset: Vec<f64> = words[5..]
            .iter()
            .map(|word| word.parse().unwrap())
            .collect();
        let mut bits = splitmix64(seed);
        let mut out = stdout().lock();
        writeln!(out, "{{\"format\": \"float64\", \"shape\": [{runs}]}}")?; // vectors: [runs, coordinates]
        let outputs: Vec<u8> = (0..runs)
            .flat_map(|_| mechanism(&dataset, &mut bits).to_le_bytes())
            .collect();
        out.write_all(&outputs)?;
        out.flush()?;
    }
    Ok(())
}

fn splitmix64(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state = state.wrapping_add(0x9e3779b97f4a7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
        z ^ (z >> 31)
    }
}
