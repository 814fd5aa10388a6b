//! Ways to damage the text of a file.

use proptest::prelude::*;
use proptest::sample::Index;

/// One way to damage a text.
#[derive(Debug, Clone)]
pub enum Damage {
    Truncate(Index),
    DuplicateLine(Index, Index),
    DropLine(Index),
    SwapLines(Index, Index),
    FlipDigit(Index, char),
    Insert(Index, char),
}

/// Any damage.
pub fn damage() -> impl Strategy<Value = Damage> {
    let letter = prop::sample::select("[]\"=,-#\\\n 09aé".chars().collect::<Vec<_>>());
    prop_oneof![
        any::<Index>().prop_map(Damage::Truncate),
        any::<(Index, Index)>().prop_map(|(from, to)| Damage::DuplicateLine(from, to)),
        any::<Index>().prop_map(Damage::DropLine),
        any::<(Index, Index)>().prop_map(|(a, b)| Damage::SwapLines(a, b)),
        (any::<Index>(), prop::char::range('0', '9')).prop_map(|(i, d)| Damage::FlipDigit(i, d)),
        (any::<Index>(), letter).prop_map(|(i, letter)| Damage::Insert(i, letter)),
    ]
}

/// The text with this damage.
pub fn apply(text: &str, damage: &Damage) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    let mut lines: Vec<&str> = text.lines().collect();
    if lines.is_empty() {
        return String::new();
    }
    match damage {
        Damage::Truncate(at) => return letters[..at.index(letters.len())].iter().collect(),
        Damage::Insert(at, letter) => {
            letters.insert(at.index(letters.len()), *letter);
            return letters.into_iter().collect();
        }
        Damage::FlipDigit(which, digit) => {
            let digits: Vec<usize> =
                (0..letters.len()).filter(|&i| letters[i].is_ascii_digit()).collect();
            if !digits.is_empty() {
                letters[digits[which.index(digits.len())]] = *digit;
            }
            return letters.into_iter().collect();
        }
        Damage::DuplicateLine(from, to) => {
            let line = lines[from.index(lines.len())];
            lines.insert(to.index(lines.len()), line);
        }
        Damage::DropLine(which) => {
            lines.remove(which.index(lines.len()));
        }
        Damage::SwapLines(a, b) => {
            let count = lines.len();
            lines.swap(a.index(count), b.index(count));
        }
    }
    lines.join("\n")
}
