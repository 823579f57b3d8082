//! The links of the project's documents to its files.

use std::path::Path;

use super::blocks::{documents, root, text_in};

/// The targets of a document's links, except links in code blocks, to other sites and to items of a crate.
fn links(document: &str) -> Vec<String> {
    let text = text_in(document);
    let prose: Vec<&str> = text.split("\n```").step_by(2).collect();
    let targets = prose.iter().flat_map(|part| part.split("](").skip(1)).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.to_owned()).filter(|target| !target.contains(':')).collect()
}

/// The anchor of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

fn has_heading(document: &str, name: &str) -> bool {
    let is_heading = |line: &str| line.starts_with('#') && anchor(line.trim_start_matches('#').trim()) == name;
    text_in(document).lines().any(is_heading)
}

#[test]
fn every_link_of_a_document_leads_to_an_existing_file_and_heading() {
    let (mut seen, mut broken) = (0, Vec::new());
    for document in documents() {
        for link in links(&document) {
            let (path, heading) = link.split_once('#').unwrap_or((&link, ""));
            let file = match path {
                "" => document.clone(),
                path => Path::new(&document).with_file_name(path).display().to_string(),
            };
            seen += 1;
            if !root().join(&file).exists() || !heading.is_empty() && !has_heading(&file, heading) {
                broken.push(format!("{document}: {link}"));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(seen > 50, "{seen} links");
}
