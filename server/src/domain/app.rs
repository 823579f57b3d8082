//! Developer apps.

use payments_core::DeveloperApp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::value::RawValue;

/// A developer app and the version of its record.
#[derive(Debug, Clone)]
pub(crate) struct App {
    /// Number of changes so far, for optimistic locking.
    pub(crate) version: u64,
    pub(crate) app: DeveloperApp,
}

/// The stored form of an app that has changed. An app at version 0 is stored as the plain resource.
#[derive(Serialize, Deserialize)]
struct Changed<A> {
    version: u64,
    app: A,
}

impl Serialize for App {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self { version: 0, app } => app.serialize(serializer),
            Self { version, app } => Changed { version: *version, app }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for App {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = <Box<RawValue>>::deserialize(deserializer)?;
        match serde_json::from_str::<Changed<DeveloperApp>>(json.get()) {
            Ok(Changed { version, app }) => Ok(Self { version, app }),
            Err(_) => serde_json::from_str(json.get()).map(|app| Self { version: 0, app }).map_err(D::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apps_with_and_without_a_version_survive_a_round_trip() {
        let json = r#"{"id":"app_1","developerId":"dev_1","name":"Shop","description":null,"redirectUris":[],
            "webhookUrl":null,"status":"active","isActive":true,"createdAt":"2026-03-01T03:30:00.000Z",
            "updatedAt":"2026-03-01T03:30:00.000Z"}"#;
        let first: App = serde_json::from_str(json).unwrap();
        assert_eq!(first.version, 0);
        let changed = App { version: 3, ..first.clone() };
        for app in [first, changed] {
            let read: App = serde_json::from_str(&serde_json::to_string(&app).unwrap()).unwrap();
            assert_eq!((read.version, read.app), (app.version, app.app));
        }
    }
}
