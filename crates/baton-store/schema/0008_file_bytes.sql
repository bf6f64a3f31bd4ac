-- Bytes of the files in the workspace of a thread, as they were measured after the last tool call that may have written some.
ALTER TABLE thread_work ADD COLUMN file_bytes BIGINT NOT NULL DEFAULT 0;
