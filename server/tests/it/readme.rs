//! The README's commands print what the README shows.

use std::process::Command;

use serde_json::Value;

use crate::server::Server;

/// The README's code blocks in one language.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    let readme = include_str!("../../../README.md");
    readme.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

/// The names of an object's fields at every depth.
fn names(value: &Value) -> Vec<String> {
    let Some(object) = value.as_object() else { return Vec::new() };
    object.iter().flat_map(|(name, value)| std::iter::once(name.clone()).chain(names(value))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_readme_commands_print_the_documented_answers() {
    let server = Server::start();
    let commands: Vec<&str> = blocks("sh").into_iter().filter(|block| block.contains("curl")).collect();
    let answers = blocks("json");
    assert_eq!((commands.len(), answers.len()), (3, 3));
    for (command, printed) in commands.into_iter().zip(answers) {
        let command = command.replace("http://127.0.0.1:8080", &server.url);
        let output = Command::new("bash").args(["-c", &command]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let (got, printed): (Value, Value) =
            (serde_json::from_str(&text).unwrap(), serde_json::from_str(printed).unwrap());
        assert_eq!(names(&got), names(&printed));
        for name in ["amount", "currency", "status", "rawStatus", "netAmount", "platform_fee", "success", "success_url"]
        {
            assert_eq!(got[name], printed[name], "{name}");
        }
        assert!(got["error"].is_null() || got == printed, "{got}");
    }
}
