//! A fixed amount of work that shows how fast a core is. The caller measures the time.

/// The number of values: two arrays of 32 KiB, which stay in a core's own cache.
const VALUES: usize = 4096;
/// The number of independent smoothing steps for each dependent one.
const INDEPENDENT: usize = 8;

/// Smooths values `times` times. Returns the number of computed values, and a number that depends on all of them.
///
/// Most steps can be computed in any order, as in a stencil of a simulation; every ninth step needs the one before it.
/// So both the throughput and the latency of a core matter.
pub fn smooth(times: u32) -> (u64, f64) {
    let mut values = vec![1.0_f64; VALUES];
    let mut other = values.clone();
    values[VALUES / 2] = 2.0;
    for _ in 0..times {
        for _ in 0..INDEPENDENT {
            independent(&values, &mut other);
            std::mem::swap(&mut values, &mut other);
        }
        dependent(&mut values);
    }
    let computed = u64::from(times) * ((INDEPENDENT + 1) * (VALUES - 2)) as u64;
    (computed, values.iter().sum())
}

fn independent(from: &[f64], to: &mut [f64]) {
    for (three, value) in from.windows(3).zip(&mut to[1..]) {
        *value = 0.25 * three[0] + 0.5 * three[1] + 0.25 * three[2];
    }
}

fn dependent(values: &mut [f64]) {
    let mut before = values[0];
    for value in &mut values[1..VALUES - 1] {
        before = 0.5 * before + 0.5 * *value;
        *value = before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Doubling the times doubles the work, and the results stay between the smallest and the largest value.
    #[test]
    fn work_is_fixed_and_its_values_stay_finite() {
        let ((once, _), (twice, sum)) = (smooth(50), smooth(100));
        assert_eq!(twice, 2 * once);
        assert!(sum > VALUES as f64 && sum < 2.0 * VALUES as f64);
    }
}
