//! `/dashboard`: a console for developers, in English or Bangla. The page is the same for everyone. The typed key stays in
//! the browser's session storage and goes only to this server's API.

use askama::Template;
use serde::Serialize;
use warp::http::StatusCode;

use super::{
    assets,
    language::{Language, OTHER_LANGUAGE},
    people,
    reply::{self, ApiError, Outcome},
    request::Request,
};
use crate::domain::{AdminPermission, Permission, Role, Workspace};

#[derive(Template)]
#[template(path = "dashboard.html")]
struct Dashboard {
    language: Language,
    sandbox_key: Option<&'static str>,
    /// The provider at which people sign in.
    provider: Option<String>,
    /// The person who has signed in, as JSON.
    person: Option<String>,
}

/// The person, as the console's scripts read it.
#[derive(Serialize)]
struct Person {
    name: String,
    workspaces: Vec<Opened>,
    /// The person's role for all workspaces.
    platform: Option<Platform>,
}

/// What the person may do through the administration API.
#[derive(Serialize)]
struct Platform {
    role: Role,
    permissions: Vec<AdminPermission>,
}

impl Platform {
    fn of(role: Role) -> Self {
        Self { role, permissions: AdminPermission::ALL.into_iter().filter(|it| role.may(*it)).collect() }
    }
}

/// A workspace that the person may open.
#[derive(Serialize)]
struct Opened {
    id: String,
    name: String,
    role: Role,
    scopes: &'static [Permission],
}

pub(super) async fn show(request: Request) -> Outcome {
    let (language, is_chosen) = request.language();
    let person = match people::of_page(&request).await? {
        None => None,
        Some(session) => {
            let found = request.service().directory.workspaces_of_session(&session).await?.into_iter();
            let opened = |(workspace, role): (Workspace, Role)| Opened {
                id: workspace.id.to_string(),
                name: workspace.name,
                role,
                scopes: role.permissions(),
            };
            let (name, platform) = (session.label().to_owned(), session.platform_role().map(Platform::of));
            let person = Person { name, workspaces: found.map(opened).collect(), platform };
            Some(serde_json::to_string(&person).map_err(ApiError::internal)?)
        }
    };
    let cache = if person.is_some() { "no-store" } else { "no-cache" };
    let provider = request.server.people.as_ref().map(|people| people.provider_name().to_owned());
    let page = Dashboard { language, sandbox_key: request.service().offered_key().await, provider, person };
    let html = page.render().map_err(ApiError::internal)?;
    let mut response = reply::page(StatusCode::OK, language, cache, reply::SCRIPTED, html);
    if is_chosen {
        language.remember("/dashboard", &mut response);
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use payments_core::{
        DeliveryStatus, DestinationKind, DisputeStatus, Environment, NoticeKind, PayoutStatus, RawStatus, RefundStatus,
        Status, TransactionKind,
    };

    const DICTIONARIES: [&str; 2] =
        [include_str!("../../templates/dashboard-bn.js"), include_str!("../../templates/dashboard-bn-platform.js")];

    /// The entries of the dictionaries.
    fn dictionary() -> BTreeMap<String, String> {
        let entries = DICTIONARIES.iter().flat_map(|it| it.lines()).filter_map(|line| line.trim().strip_suffix(','));
        entries.map(|entry| serde_json::from_str::<BTreeMap<String, String>>(&format!("{{{entry}}}")).unwrap()).fold(
            BTreeMap::new(),
            |mut all, entry| {
                for (english, bangla) in entry {
                    assert!(all.insert(english.clone(), bangla).is_none(), "{english} is there twice");
                }
                all
            },
        )
    }

    /// The texts that the scripts pass to `t`, all of them literals.
    fn texts() -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/templates")).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if !name.starts_with("dashboard") || !name.ends_with(".js") || name.starts_with("dashboard-bn") {
                continue;
            }
            let script = std::fs::read_to_string(&path).unwrap();
            for (at, _) in script.match_indices("t(") {
                if script[..at].ends_with(|it: char| it.is_ascii_alphanumeric() || it == '_' || it == '.') {
                    continue;
                }
                let mut texts = serde_json::Deserializer::from_str(&script[at + 2..]).into_iter::<String>();
                let text = texts.next().and_then(Result::ok);
                found.insert(text.unwrap_or_else(|| panic!("{name} passes t something else: {:.60}", &script[at..])));
            }
        }
        found
    }

    fn placeholders(text: &str) -> BTreeSet<&str> {
        text.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name).collect()
    }

    #[test]
    fn every_text_of_the_console_and_every_status_is_translated_and_no_translation_is_unused() {
        let (dictionary, texts) = (dictionary(), texts());
        let mut words: BTreeSet<String> = texts.clone();
        words.extend(Status::KNOWN.iter().map(ToString::to_string));
        words.extend(RawStatus::KNOWN.iter().map(ToString::to_string));
        words.extend(DeliveryStatus::KNOWN.iter().map(ToString::to_string));
        words.extend(RefundStatus::KNOWN.iter().map(ToString::to_string));
        words.extend(DisputeStatus::KNOWN.iter().map(ToString::to_string));
        words.extend(PayoutStatus::KNOWN.iter().map(ToString::to_string));
        words.extend(DestinationKind::KNOWN.iter().map(ToString::to_string));
        words.extend(NoticeKind::KNOWN.iter().map(ToString::to_string));
        words.extend(Environment::ALL.iter().map(ToString::to_string));
        words.extend(crate::domain::RowKind::ALL.map(|kind| kind.as_str().to_owned()));
        words.extend(TransactionKind::KNOWN.iter().map(ToString::to_string));
        assert!(texts.len() > 150, "{}", texts.len());
        assert_eq!(
            words.iter().filter(|text| !dictionary.contains_key(*text)).collect::<Vec<_>>(),
            Vec::<&String>::new()
        );
        assert_eq!(dictionary.keys().filter(|text| !words.contains(*text)).collect::<Vec<_>>(), Vec::<&String>::new());
        for (english, bangla) in &dictionary {
            assert_eq!(placeholders(english), placeholders(bangla), "{english}");
            let is_bangla = bangla.chars().any(|it| ('\u{980}'..='\u{9ff}').contains(&it));
            assert!(is_bangla || english.starts_with('{'), "{english}");
        }
    }
}
