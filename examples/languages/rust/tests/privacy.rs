use std::process::Command;

fn dpaudit(mechanism: &str, options: &[&str]) {
    let program = format!("'{}' {mechanism}", env!("CARGO_BIN_EXE_audit"));
    let audit = Command::new("dpaudit")
        .args(["audit", "--program", &program])
        .args(options)
        .output()
        .expect("dpaudit is not on the PATH");
    let said = [audit.stdout, audit.stderr].concat();
    assert!(audit.status.success(), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn noisy_count_is_private() {
    let pair = ["--x", "[1]", "--y", "[]", "--adjacency", "add-remove"];
    dpaudit(
        "noisy_count",
        &[
            &pair[..],
            &["--epsilon", "0.7", "--runs", "100000", "--alpha", "1e-5"],
        ]
        .concat(),
    );
}
