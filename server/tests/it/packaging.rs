//! The files that packages install beside the binary.

use std::{path::PathBuf, process::Command};

use crate::server::text_of;

fn packaged(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("packaging").join(name)
}

#[test]
fn the_systemd_unit_has_an_exposure_below_2() {
    let mut analyze = Command::new("systemd-analyze");
    analyze.args(["security", "--offline=true", "--threshold=19"]).arg(packaged("payments-server.service"));
    let output = analyze.output().expect("systemd-analyze is needed; ./test installs it");
    assert!(output.status.success(), "{}", text_of(&output));
}
