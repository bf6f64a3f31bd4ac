//! Vectors of the sections of shared documents.

use baton_core::Store;
use baton_core::store::Embedding;

use super::fixture::tenant;

fn embedding(section: u8, vector: &[f32]) -> Embedding {
    Embedding { section: [section; 32], vector: vector.into() }
}

/// K3
pub async fn embeddings_are_replaced_listed_and_deleted(store: &dyn Store) {
    let acme = tenant(store);
    // More than one statement of SQLite inserts.
    let many: Vec<Embedding> = (0..40).map(|number| embedding(number, &[f32::from(number), -0.5])).collect();
    acme.put_embeddings("a", many.clone()).await.unwrap();
    acme.put_embeddings("b", vec![embedding(1, &[1.0])]).await.unwrap();
    let replaced = embedding(3, &[0.25, 0.75, 1.0]);
    acme.put_embeddings("a", vec![replaced.clone()]).await.unwrap();
    let first = acme.embeddings("a", None, 4).await.unwrap();
    assert_eq!(first, [&many[..3], &[replaced]].concat());
    let rest = acme.embeddings("a", Some([3; 32]), 100).await.unwrap();
    assert_eq!(rest, many[4..]);
    acme.delete_embeddings("a", (0..39).map(|number| [number; 32]).collect()).await.unwrap();
    assert_eq!(acme.embeddings("a", None, 100).await.unwrap(), many[39..]);
    assert_eq!(acme.embeddings("b", None, 100).await.unwrap(), [], "another model is not in use any more");
}

/// A8
pub async fn a8_embeddings_belong_to_their_tenant(store: &dyn Store) {
    let (acme, other) = (tenant(store), tenant(store));
    acme.put_embeddings("a", vec![embedding(1, &[1.0])]).await.unwrap();
    assert_eq!(other.embeddings("a", None, 10).await.unwrap(), []);
    other.delete_embeddings("x", vec![[1; 32]]).await.unwrap();
    assert_eq!(acme.embeddings("a", None, 10).await.unwrap().len(), 1);
}
