//! Shell completions and manual pages.

use std::{fs, os::unix::fs::PermissionsExt, process::Command};

use crate::server::{server_binary, text_of};

fn print(arguments: &[&str]) -> String {
    let output = Command::new(server_binary()).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", text_of(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_shell_completes_commands_and_flags() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = print(&["completions", shell]);
        assert!(script.contains("workspaces") && script.contains("listen"), "{shell}");
    }
    for (words, completed) in [("wor", "workspaces"), ("keys rot", "rotate"), ("serve --base-u", "--base-url")] {
        let script = format!(
            "source <('{}' completions bash); COMP_WORDS=(payments-server {words}); \
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); found=$(complete -p payments-server); found=${{found##*-F }}; \
             ${{found%% *}} payments-server \"${{COMP_WORDS[-1]}}\" \"${{COMP_WORDS[-2]}}\"; echo \"${{COMPREPLY[@]}}\"",
            server_binary()
        );
        let output = Command::new("bash").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), completed, "{}", text_of(&output));
    }
}

#[test]
fn the_manual_describes_every_command_and_others_can_read_it() {
    let page = print(&["man"]);
    assert!(page.contains(".TH payments-server 1") && page.contains("PAYMENTS_LISTEN"), "{page}");
    let directory = tempfile::tempdir().unwrap();
    let pages = directory.path().join("man1");
    assert_eq!(print(&["man", pages.to_str().unwrap()]), "");
    for name in
        ["payments-server", "payments-server-serve", "payments-server-keys-create", "payments-server-disputes-open"]
    {
        let page = pages.join(format!("{name}.1"));
        assert!(fs::read_to_string(&page).unwrap().contains(".SH"), "{name}");
        assert_eq!(fs::metadata(&page).unwrap().permissions().mode() & 0o444, 0o444, "{name}");
    }
}
