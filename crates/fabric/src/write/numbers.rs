//! Formats numbers for people.

/// Formats a number with a comma between groups of three digits.
pub(super) fn thousands(number: u32) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Rounds a number to three decimals.
pub(super) fn short(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}
