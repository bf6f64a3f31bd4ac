//! `BATON_<SECTION>_<KEY>` as overrides of `baton.toml`.

/// Sections that a variable can name. `BATON_CONFIG` and the like are not overrides.
pub(super) const SECTIONS: &[&str] = &[
    "server",
    "store",
    "bus",
    "agents",
    "models",
    "approvals",
    "auth",
    "a2a",
    "features",
    "orchestration",
    "handoff",
    "limits",
    "retention",
    "sandbox",
    "telemetry",
];

/// One variable: which key it sets, and to what.
pub(super) struct Override {
    pub(super) name: String,
    section: &'static str,
    key: String,
    value: toml::Value,
}

pub(super) fn overrides(variables: impl Iterator<Item = (String, String)>) -> impl Iterator<Item = Override> {
    variables.filter_map(|(name, value)| {
        let rest = name.strip_prefix("BATON_")?.to_lowercase();
        let (section, key) = rest.split_once('_')?;
        let section = SECTIONS.iter().find(|known| **known == section)?;
        Some(Override { section, key: key.to_owned(), value: typed(&value), name })
    })
}

/// Numbers, booleans and lists as TOML writes them; everything else is text.
fn typed(value: &str) -> toml::Value {
    let parsed = toml::from_str::<toml::Table>(&format!("value = {value}")).ok();
    match parsed.and_then(|mut table| table.remove("value")) {
        Some(value @ (toml::Value::Integer(_) | toml::Value::Boolean(_) | toml::Value::Array(_))) => value,
        Some(toml::Value::Float(number)) if number.is_finite() => toml::Value::Float(number),
        _ => toml::Value::String(value.to_owned()),
    }
}

impl Override {
    pub(super) fn apply(&self, table: &mut toml::Table) {
        let section = table.entry(self.section).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        if let toml::Value::Table(section) = section {
            section.insert(self.key.clone(), self.value.clone());
        }
    }
}
