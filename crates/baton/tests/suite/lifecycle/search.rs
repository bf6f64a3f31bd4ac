//! Looks for texts in every column of every table, and in every file that Baton writes.

use std::path::{Path, PathBuf};

use tokio_postgres::NoTls;

pub(super) struct Search {
    /// Where, and what is there.
    places: Vec<(String, Vec<u8>)>,
}

impl Search {
    /// Reads everything: of SQLite all tables and the bytes of its files, of PostgreSQL all tables.
    pub(super) fn of(dir: &Path, store: &str) -> Self {
        let mut places = files(dir);
        if store.starts_with("sqlite") {
            places.extend(sqlite(&dir.join("baton.db")));
        } else {
            places.extend(postgres(store));
        }
        Self { places }
    }

    /// The places that have one of these texts.
    pub(super) fn find(&self, texts: &[&str]) -> Vec<String> {
        let has = |bytes: &[u8]| {
            texts.iter().any(|text| bytes.windows(text.len()).any(|part| part == text.as_bytes()))
        };
        self.places.iter().filter(|(_, bytes)| has(bytes)).map(|(place, _)| place.clone()).collect()
    }
}

/// All files of the project except those that a person wrote.
fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with("baton.toml") {
                found.push((path.display().to_string(), std::fs::read(&path).unwrap_or_default()));
            }
        }
    }
    found
}

fn sqlite(file: &Path) -> Vec<(String, Vec<u8>)> {
    let connection = rusqlite::Connection::open(file).unwrap();
    let mut statement = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").unwrap();
    let tables: Vec<String> =
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert!(tables.len() > 20);
    let mut found = Vec::new();
    for table in tables {
        let mut statement = connection.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns: Vec<String> = statement.column_names().map(ToString::to_string).collect();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            for (at, column) in columns.iter().enumerate() {
                let bytes = match row.get_ref(at).unwrap() {
                    rusqlite::types::ValueRef::Text(bytes) | rusqlite::types::ValueRef::Blob(bytes) => {
                        bytes.to_vec()
                    }
                    _ => continue,
                };
                found.push((format!("{table}.{column}"), bytes));
            }
        }
    }
    found
}

fn postgres(url: &str) -> Vec<(String, Vec<u8>)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        tokio::spawn(connection);
        let columns = client
            .query(
                "SELECT table_name::text, column_name::text, data_type::text FROM information_schema.columns
                WHERE table_schema = 'baton' AND data_type IN ('text', 'bytea')",
                &[],
            )
            .await
            .unwrap();
        assert!(columns.len() > 50);
        let mut found = Vec::new();
        for column in columns {
            let [table, name, kind]: [String; 3] = [column.get(0), column.get(1), column.get(2)];
            let value = if kind == "text" { format!("convert_to({name}, 'UTF8')") } else { name.clone() };
            let sql = format!("SELECT {value} FROM baton.{table} WHERE {name} IS NOT NULL");
            for row in client.query(&sql, &[]).await.unwrap() {
                found.push((format!("{table}.{name}"), row.get(0)));
            }
        }
        found
    })
}
