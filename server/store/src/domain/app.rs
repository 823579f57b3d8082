//! Developer apps.

use payments_core::DeveloperApp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::value::RawValue;

use super::Brand;

/// A developer app, its brand, and the version of its record.
#[derive(Debug, Clone)]
pub struct App {
    pub version: u64,
    pub brand: Brand,
    pub app: DeveloperApp,
}

/// The stored form of an app that has changed or has a brand. Any other app is stored as the plain resource.
#[derive(Serialize, Deserialize)]
struct Changed<A> {
    version: u64,
    #[serde(default, skip_serializing_if = "is_plain")]
    brand: Brand,
    app: A,
}

fn is_plain(brand: &Brand) -> bool {
    *brand == Brand::default()
}

impl Serialize for App {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self { version: 0, brand, app } if is_plain(brand) => app.serialize(serializer),
            Self { version, brand, app } => {
                Changed { version: *version, brand: brand.clone(), app }.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for App {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = <Box<RawValue>>::deserialize(deserializer)?;
        match serde_json::from_str::<Changed<DeveloperApp>>(json.get()) {
            Ok(Changed { version, brand, app }) => Ok(Self { version, brand, app }),
            Err(_) => serde_json::from_str(json.get())
                .map(|app| Self { version: 0, brand: Brand::default(), app })
                .map_err(D::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apps_with_and_without_a_version_or_a_brand_survive_a_round_trip() {
        let json = r#"{"id":"app_1","developerId":"dev_1","name":"Shop","description":null,"redirectUris":[],
            "webhookUrl":null,"status":"active","isActive":true,"createdAt":"2026-03-01T03:30:00.000Z",
            "updatedAt":"2026-03-01T03:30:00.000Z"}"#;
        let first: App = serde_json::from_str(json).unwrap();
        assert_eq!(first.version, 0);
        assert!(serde_json::to_string(&first).unwrap().starts_with(r#"{"id":"app_1""#), "as older servers stored it");
        let changed = App { version: 3, ..first.clone() };
        let brand = Brand { colour: "#0a7d4f".parse().ok(), logo_url: "https://cdn.example/logo.svg".parse().ok() };
        let branded = App { brand: brand.clone(), ..first.clone() };
        let both = App { brand, ..changed.clone() };
        for app in [first, changed, branded, both] {
            let read: App = serde_json::from_str(&serde_json::to_string(&app).unwrap()).unwrap();
            assert_eq!((read.version, read.brand, read.app), (app.version, app.brand, app.app));
        }
    }
}
