//! The header in `include/` is what the sources say.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;

/// The header is made of the sources. With HEADER=write the test writes it instead (`make header`).
#[test]
fn the_header_is_that_of_the_sources() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(here.join("cbindgen.toml")).unwrap();
    let mut made = Vec::new();
    cbindgen::Builder::new()
        .with_crate(here)
        .with_config(config)
        .generate()
        .expect("the sources give a header")
        .write(&mut made);
    let made = String::from_utf8(made).unwrap();
    let file = here.join("include/topolane.h");
    if std::env::var_os("HEADER").is_some_and(|value| value == "write") {
        std::fs::write(&file, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == made, "crates/capi/include/topolane.h is not up to date: run `make header`");
}
