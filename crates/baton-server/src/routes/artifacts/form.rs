//! A file as a form brings it.

use axum::extract::multipart::{Field, Multipart, MultipartError};
use axum::extract::{FromRequest, Request};
use baton_core::ThreadId;
use http::StatusCode;
use http::header::CONTENT_TYPE;

use crate::app::App;
use crate::problem::{ApiResult, Code, Problem};
use crate::wire::artifact;

/// What was sent. Guards have seen to it that it is not too large.
#[derive(Debug)]
pub struct Upload {
    pub thread_id: ThreadId,
    pub name: String,
    pub media_type: String,
    pub bytes: Vec<u8>,
}

struct UploadedFile {
    name: String,
    media_type: String,
    bytes: Vec<u8>,
}

impl FromRequest<App> for Upload {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let form = Multipart::from_request(request, app).await;
        let mut form = form.map_err(|_| {
            let detail = "send `multipart/form-data` with the fields `thread_id` and `file`";
            Problem::new(Code::UnsupportedMediaType, detail)
        })?;
        let (mut thread, mut file) = (None, None);
        while let Some(field) = form.next_field().await.map_err(|error| broken(&error))? {
            match field.name().unwrap_or_default() {
                "thread_id" if thread.is_none() => thread = Some(thread_id(field).await?),
                "file" if file.is_none() => file = Some(UploadedFile::read(field).await?),
                "thread_id" => return Err(wrong("thread_id", "once")),
                "file" => return Err(wrong("file", "one file at a time")),
                _ => return Err(wrong("", "this form has the fields `thread_id` and `file`, and no others")),
            }
        }
        let thread_id = thread.ok_or_else(|| wrong("thread_id", "the thread that the file is for"))?;
        let file = file.ok_or_else(|| wrong("file", "the file"))?;
        let UploadedFile { name, media_type, bytes } = file;
        Ok(Self { thread_id, name, media_type, bytes })
    }
}

async fn thread_id(field: Field<'_>) -> ApiResult<ThreadId> {
    let text = field.text().await.map_err(|error| broken(&error))?;
    ThreadId::parse(text.trim()).map_err(|_| {
        Problem::new(Code::InvalidThreadId, "`thread_id` is no thread id").at("thread_id", "a UUID version 4")
    })
}

impl UploadedFile {
    async fn read(field: Field<'_>) -> ApiResult<Self> {
        let name = field.file_name().map(artifact::clean_name);
        let name = name.ok_or_else(|| wrong("file", "a file has a `filename`"))?;
        let said = field.headers().get(CONTENT_TYPE).map(|said| said.to_str().unwrap_or_default().trim());
        let media_type = said.unwrap_or(artifact::ANY).to_owned();
        if !artifact::is_media_type(&media_type) {
            return Err(wrong("file", "its `Content-Type` is no media type, such as `text/plain`"));
        }
        let bytes = field.bytes().await.map_err(|error| broken(&error))?.to_vec();
        Ok(Self { name, media_type, bytes })
    }
}

fn wrong(name: &str, detail: &str) -> Problem {
    Problem::new(Code::InvalidRequest, "the form is not what this route takes; `errors` says where")
        .at(name, detail)
}

fn broken(error: &MultipartError) -> Problem {
    let code = match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Code::PayloadTooLarge,
        _ => Code::InvalidRequest,
    };
    Problem::new(code, "the form cannot be read: it is not as `multipart/form-data` has to be")
}
