//! `[profiles.<name>]`: settings that `--profile` puts over those of the file.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::{Config, ConfigError};

/// The profiles of a `baton.toml`, each as it is written: any key of the file except `profiles`.
pub type Profiles = BTreeMap<String, toml::Table>;

/// Only to find the line of a mistake, which a merged table has lost.
#[derive(Deserialize)]
struct ProfilesOfFile {
    #[serde(rename = "profiles")]
    _profiles: BTreeMap<String, Config>,
}

/// Puts `over` on `base`: tables are merged key by key, every other value replaces the one below it.
pub(super) fn merge(base: &mut toml::Table, over: &toml::Table) {
    for (key, value) in over {
        match (base.get_mut(key), value) {
            (Some(toml::Value::Table(base)), toml::Value::Table(over)) => merge(base, over),
            _ => {
                base.insert(key.clone(), value.clone());
            }
        }
    }
}

/// The profile with this name, or an error that suggests the nearest one.
pub(super) fn find<'a>(
    profiles: &'a Profiles,
    name: &str,
    path: &Path,
) -> Result<&'a toml::Table, ConfigError> {
    profiles.get(name).ok_or_else(|| {
        let near = nearest(name, profiles.keys().map(String::as_str));
        let names: Vec<&str> = profiles.keys().map(String::as_str).collect();
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => "it has no `[profiles.<name>]`".to_owned(),
            None => format!("it has {}", names.join(", ")),
        };
        ConfigError::UnknownProfile { name: name.to_owned(), path: path.to_owned(), help }
    })
}

/// Checks every profile, also those that are not used: a mistake is found before the day it matters.
pub(super) fn check(
    text: &str,
    file: &toml::Table,
    profiles: &Profiles,
    path: &Path,
) -> Result<(), ConfigError> {
    let invalid = |message: String| ConfigError::Invalid { path: path.to_owned(), message };
    for (name, profile) in profiles {
        if profile.contains_key("profiles") {
            return Err(invalid(format!(
                "a profile cannot contain profiles: remove `profiles` from `[profiles.{name}]`"
            )));
        }
        let mut merged = file.clone();
        merge(&mut merged, profile);
        let merged = merged.try_into::<Config>().map_err(|error| {
            let with_line = toml::from_str::<ProfilesOfFile>(text).err().map(|error| error.to_string());
            let message = with_line.unwrap_or_else(|| format!("profile `{name}`: {}", error.message()));
            invalid(with_suggestion(message))
        })?;
        if let Some(sub_agents) = &merged.orchestration.sub_agent_profile {
            find(profiles, sub_agents, path)?;
        }
    }
    Ok(())
}

/// Adds the nearest of the known keys to the parser's message about an unknown one.
pub(super) fn with_suggestion(message: String) -> String {
    let Some((_, rest)) = message.split_once("unknown field ") else { return message };
    let mut words = rest.split('`').skip(1).step_by(2);
    let (wrong, known): (_, Vec<&str>) = (words.next().unwrap_or_default(), words.collect());
    match nearest(wrong, known.into_iter()) {
        Some(near) => format!("{}\ndid you mean `{near}`?\n", message.trim_end()),
        None => message,
    }
}

/// The known name that a text may be a misspelling of.
fn nearest<'a>(text: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    baton_agents::names::nearest(text, known, |length| (length / 3).max(1)).first().copied()
}
