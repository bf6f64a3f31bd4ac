-- Vectors of the sections of shared documents, by the text that was embedded. They hold nothing of users and threads.
CREATE TABLE embeddings (
    tenant TEXT NOT NULL,
    -- As it is configured.
    model TEXT NOT NULL,
    -- SHA-256 of the text.
    section BYTEA NOT NULL,
    -- Numbers of 4 bytes, little-endian.
    vector BYTEA NOT NULL,
    PRIMARY KEY (tenant, model, section)
);
