//! Vectors of the sections of shared documents.

use baton_core::StoreError;
use baton_core::store::{Embedding, Embeddings, Pending, SectionHash};

use crate::insert::{Changes, ColumnKind, Insert};
use crate::job::JobSubject;
use crate::tenant::Tenant;
use crate::tx::Tx;
use crate::value::{Row, SqlValue, params};

impl Embeddings for Tenant {
    fn embeddings(&self, model: &str, after: Option<SectionHash>, limit: u32) -> Pending<'_, Vec<Embedding>> {
        self.read((model.to_owned(), after, limit), |tx, (model, after, limit)| {
            Box::pin(list(tx, model, *after, *limit))
        })
    }

    fn put_embeddings(&self, model: &str, embeddings: Vec<Embedding>) -> Pending<'_, ()> {
        self.write(JobSubject::Tenant, (model.to_owned(), embeddings), |tx, (model, embeddings)| {
            Box::pin(put(tx, model, embeddings))
        })
    }

    fn delete_embeddings(&self, model: &str, sections: Vec<SectionHash>) -> Pending<'_, ()> {
        self.write(JobSubject::Tenant, (model.to_owned(), sections), |tx, (model, sections)| {
            Box::pin(delete(tx, model, sections))
        })
    }
}

const LIST: &str = "
    SELECT section, vector FROM embeddings WHERE tenant = $1 AND model = $2 AND section > $3
    ORDER BY section LIMIT $4";

async fn list(
    tx: &Tx<'_>,
    model: &str,
    after: Option<SectionHash>,
    limit: u32,
) -> Result<Vec<Embedding>, StoreError> {
    let after = SqlValue::Blob(after.map(Vec::from).unwrap_or_default());
    let rows = tx.query(LIST, params![model, after, i64::from(limit)]).await?;
    rows.iter().map(embedding).collect()
}

fn embedding(row: &Row) -> Result<Embedding, StoreError> {
    let corrupt = || StoreError::Corrupt("an embedding has a wrong length".to_owned());
    let (numbers, []) = row.blob(1)?.as_chunks::<4>() else { return Err(corrupt()) };
    Ok(Embedding {
        section: row.blob(0)?.try_into().map_err(|_| corrupt())?,
        vector: numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect(),
    })
}

static PUT: Insert = Insert::new(
    "embeddings",
    &[("model", ColumnKind::Text), ("section", ColumnKind::Bytes), ("vector", ColumnKind::Bytes)],
    "ON CONFLICT (tenant, model, section) DO UPDATE SET vector = excluded.vector",
);

async fn put(tx: &Tx<'_>, model: &str, embeddings: &[Embedding]) -> Result<(), StoreError> {
    let row = |embedding: &Embedding| {
        let vector = embedding.vector.iter().flat_map(|number| number.to_le_bytes()).collect();
        vec![
            SqlValue::Text(model.to_owned()),
            SqlValue::Blob(embedding.section.to_vec()),
            SqlValue::Blob(vector),
        ]
    };
    let mut changes = Changes::default();
    changes.insert(&PUT, embeddings.iter().map(row).collect());
    tx.write(changes).await
}

const DELETE_ONE: &str = "DELETE FROM embeddings WHERE tenant = $1 AND model = $2 AND section = $3";
const DELETE_OTHERS: &str = "DELETE FROM embeddings WHERE tenant = $1 AND model <> $2";

async fn delete(tx: &Tx<'_>, model: &str, sections: &[SectionHash]) -> Result<(), StoreError> {
    tx.execute(DELETE_OTHERS, params![model]).await?;
    let rows = sections
        .iter()
        .map(|section| vec![SqlValue::Text(model.to_owned()), SqlValue::Blob(section.to_vec())]);
    tx.execute_each(DELETE_ONE, rows).await
}
