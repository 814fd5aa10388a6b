//! Compares `kueue-tas` with Kueue's own code on random states of machines: `make bench BENCH=kueue`.
//!
//! `kueue PROGRAM [--states N] [--seed S] [--json] [--record N]`: PROGRAM is what `benches/kueue` builds. For each kind
//! of request it prints how many states there were, how many of them both place, and how many get another answer. Then
//! it prints the first of the differing answers. `--record` prints states and Kueue's answers instead.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used, clippy::panic)]

#[path = "../tests/common/kueue_states.rs"]
mod kueue_states;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use kueue_states::State;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// The number of lines sent before answers are read.
const BATCH: usize = 500;
/// The largest number of differing answers that are printed.
const SHOWN: usize = 20;

#[derive(Default)]
struct Row {
    states: usize,
    placed: usize,
    others: usize,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let value = |name: &str| {
        let at = words.iter().position(|word| word == name)?;
        words.get(at + 1)?.parse::<u64>().ok()
    };
    let record = value("--record");
    let states = record.or_else(|| value("--states")).unwrap_or(100_000) as usize;
    let seed = value("--seed").unwrap_or(1);
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    let mut shown = Vec::new();
    let mut ask = |state: &State, kueue: &str| {
        if record.is_some() {
            println!("{state} {kueue}");
            return;
        }
        let row = rows.entry(kind(state)).or_default();
        row.states += 1;
        row.placed += usize::from(kueue != "-");
        let ours = state.answer(false);
        let whole = state.answer_of_whole_nodes().unwrap_or_else(|| ours.clone());
        let domains = state.answer(true);
        if [&ours, &whole, &domains].iter().any(|answer| *answer != kueue) {
            row.others += 1;
            if shown.len() < SHOWN {
                shown.push(format!(
                    "{state}\n  Kueue {kueue}\n  here  {ours} | {whole} | {domains}"
                ));
            }
        }
    };
    each_answer(words.first().unwrap(), states, seed, &mut ask);
    if record.is_none() {
        report(&rows, &shown, words.iter().any(|word| word == "--json"));
    }
}

/// The kind of a state's request: its profile, the kind of its level, and whether it has slices.
fn kind(state: &State) -> String {
    let line = state.to_string();
    let words: Vec<&str> = line.split(' ').collect();
    let mode = words[1].split(':').next().unwrap();
    format!("{} {mode}{}", words[0], if words[2] == "-" { "" } else { " in slices" })
}

/// Asks Kueue about random states, and passes each state and its answer to `heard`.
fn each_answer(program: &str, states: usize, seed: u64, heard: &mut dyn FnMut(&State, &str)) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut kueue = Command::new(program);
    let kueue = kueue.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut left = states;
    while left > 0 {
        let batch: Vec<State> =
            (0..left.min(BATCH * 100)).map(|_| State::random(&mut random)).collect();
        left -= batch.len();
        let mut running = kueue.spawn().unwrap_or_else(|error| panic!("{program}: {error}"));
        let mut input = running.stdin.take().unwrap();
        let lines: Vec<String> = batch.iter().map(|state| format!("{state}\n")).collect();
        let writer = std::thread::spawn(move || {
            lines.iter().try_for_each(|line| input.write_all(line.as_bytes()))
        });
        let output = BufReader::new(running.stdout.take().unwrap());
        let answers: Vec<String> = output.lines().map(Result::unwrap).collect();
        writer.join().unwrap().unwrap();
        assert!(running.wait().unwrap().success(), "{program} failed");
        assert_eq!(answers.len(), batch.len(), "an answer to every state");
        batch.iter().zip(&answers).for_each(|(state, answer)| heard(state, answer));
    }
}

fn report(rows: &BTreeMap<String, Row>, shown: &[String], json: bool) {
    let sum = |of: fn(&Row) -> usize| rows.values().map(of).sum::<usize>();
    let (states, placed, others) = (sum(|r| r.states), sum(|r| r.placed), sum(|r| r.others));
    let same = 100.0 * (states - others) as f64 / states as f64;
    if json {
        let rows: Vec<String> = rows
            .iter()
            .map(|(kind, Row { states, placed, others })| {
                format!(
                    r#""{kind}": {{"states": {states}, "placed": {placed}, "others": {others}}}"#
                )
            })
            .collect();
        println!(
            r#"{{"states": {states}, "placed": {placed}, "others": {others}, "same_percent": {same:.3}, "kinds": {{{}}}}}"#,
            rows.join(", ")
        );
        return;
    }
    println!("{:34}{:>9}{:>9}{:>15}", "request", "states", "placed", "other answers");
    for (kind, row) in rows {
        println!("{kind:34}{:>9}{:>9}{:>15}", row.states, row.placed, row.others);
    }
    println!("{:34}{states:>9}{placed:>9}{others:>15}", "all");
    println!("the same answer: {same:.3} %");
    for case in shown {
        println!("{case}");
    }
}
