//! Natural order of names that contain numbers.

use std::cmp::Ordering;

/// Compares two names so that `leaf2` comes before `leaf10`: runs of digits as numbers, everything else as text. Names
/// that are equal in that order are compared by their bytes.
pub(super) fn natural_order(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    while !left.is_empty() && !right.is_empty() {
        let (word_a, rest_a) = first_run(left);
        let (word_b, rest_b) = first_run(right);
        let numbers = word_a.starts_with(digit) && word_b.starts_with(digit);
        let order = if numbers {
            let (x, y) = (word_a.trim_start_matches('0'), word_b.trim_start_matches('0'));
            x.len().cmp(&y.len()).then(x.cmp(y))
        } else {
            word_a.cmp(word_b)
        };
        if order != Ordering::Equal {
            return order;
        }
        (left, right) = (rest_a, rest_b);
    }
    left.len().cmp(&right.len()).then_with(|| a.cmp(b))
}

fn digit(letter: char) -> bool {
    letter.is_ascii_digit()
}

/// Splits off the leading digits, or the leading text without digits.
fn first_run(name: &str) -> (&str, &str) {
    let digits = name.starts_with(digit);
    name.split_at(name.find(|letter| digit(letter) != digits).unwrap_or(name.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_count_as_numbers() {
        let mut names = ["leaf10", "leaf-1", "leaf2", "leaf02", "Leaf3", "leaf", "leaf2b", "9"];
        names.sort_by(|a, b| natural_order(a, b));
        assert_eq!(names, ["9", "Leaf3", "leaf", "leaf02", "leaf2", "leaf2b", "leaf10", "leaf-1"]);
    }
}
