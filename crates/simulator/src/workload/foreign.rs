//! Recognises files in formats that no reader here supports, and says how to convert them.

/// Identifies a file by its first bytes. Returns what it is and what to do; `None` if it is not recognised.
pub(super) fn advice(start: &[u8]) -> Option<String> {
    let by_first_bytes = FIRST_BYTES.iter().find(|(bytes, _)| start.starts_with(bytes));
    if let Some((_, advice)) = by_first_bytes {
        return Some((*advice).to_owned());
    }
    let text = String::from_utf8_lossy(start);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    match line.as_bytes()[0] {
        b'{' | b'[' => Some(of_json(&text).to_owned()),
        b'<' => Some("it is HTML or XML, perhaps an error page in the place of a download".to_owned()),
        _ if is_pbs(line) => Some(
            "it is an accounting log of PBS or Torque: convert it to SWF or to CSV (id, submit, run, nodes)"
                .to_owned(),
        ),
        _ if line.split(':').count() >= SGE_FIELDS => Some(
            "it is an accounting file of Grid Engine: convert it to SWF or to CSV (id, submit, run, nodes)"
                .to_owned(),
        ),
        _ => of_header(line),
    }
}

const FIRST_BYTES: [(&[u8], &str); 11] = [
    (b"PAR1", "it is a Parquet file: write its rows as CSV"),
    (b"PK\x03\x04", "it is a zip archive or a spreadsheet: unpack it, or save the sheet as CSV"),
    (b"SQLite format 3", "it is an SQLite database: write the rows of its jobs as CSV"),
    (b"BZh", "it is compressed by bzip2: expand it first; gzip is read as it is"),
    (b"\xfd7zXZ", "it is compressed by xz: expand it first; gzip is read as it is"),
    (b"\x28\xb5\x2f\xfd", "it is compressed by zstd: expand it first; gzip is read as it is"),
    (b"\xff\xfe", "it is UTF-16 text: save it as UTF-8"),
    (b"\xfe\xff", "it is UTF-16 text: save it as UTF-8"),
    (
        b"version https://git-lfs",
        "it is a pointer of Git LFS: git lfs pull fetches the file itself",
    ),
    (
        b"\"JOB_",
        "it is an accounting log of LSF (lsb.acct): convert it to SWF or to CSV (id, submit, run, nodes)",
    ),
    (b"%PDF", "it is a PDF document"),
];
/// The least number of fields in a Grid Engine record.
const SGE_FIELDS: usize = 40;

fn of_json(text: &str) -> &'static str {
    let has = |key: &str| text.contains(&format!("\"{key}\""));
    if has("nb_res") || has("profiles") {
        "it is a workload of Batsim in JSON: write its jobs as CSV (job_id, submission_time, execution_time, \
         requested_number_of_resources), or give the jobs.csv that Batsim writes"
    } else if has("meta") || has("association") {
        "it is what sacct --json prints: use sacct -P"
    } else {
        "it is JSON: write its jobs as CSV (id, submit, run, nodes)"
    }
}

/// Whether a line looks like `04/01/2017 00:00:11;E;123.server;user=u ...`.
fn is_pbs(line: &str) -> bool {
    let mut fields = line.splitn(4, ';');
    let (Some(time), Some(kind), Some(_), Some(_)) =
        (fields.next(), fields.next(), fields.next(), fields.next())
    else {
        return false;
    };
    let is_time = time.bytes().all(|byte| byte.is_ascii_digit() || b"/: .".contains(&byte));
    is_time && time.contains('/') && kind.len() == 1 && kind.as_bytes()[0].is_ascii_uppercase()
}

/// Advice for a line of column names that no reader supports.
fn of_header(line: &str) -> Option<String> {
    let has = |names: &[&str], cells: &[&str]| {
        names.iter().all(|name| cells.iter().any(|cell| cell.trim().eq_ignore_ascii_case(name)))
    };
    if line.contains(['|', ',']) {
        return None;
    }
    for (delimiter, shown) in [(';', "semicolons"), ('\t', "tabs")] {
        let cells: Vec<&str> = line.split(delimiter).collect();
        if has(&["Submit", "Start"], &cells) && !has(&["run"], &cells) {
            return Some(format!(
                "it has {shown} between the fields, where sacct -P writes |: leave --delimiter out, or use \
                 topolane workload import"
            ));
        }
        if has(&["submit", "run"], &cells) || has(&["submission_time"], &cells) {
            return Some(format!("it has {shown} between the fields, where CSV has commas"));
        }
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    if words.len() > 1 && words.iter().any(|word| word.eq_ignore_ascii_case("JobID")) {
        return Some("it is a table for people to read: print it with sacct -P".to_owned());
    }
    None
}
