//! REST: the path is the method. `/v1` is 0.3, without it is 1.0.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::response::{IntoResponse, Response};
use baton_a2a::model::{PushQuery, SendResult, TaskQuery};
use baton_a2a::{A2aError, ErrorCode, WireForm};
use http::{HeaderValue, Method, StatusCode, Uri, header};
use serde_json::{Map, Value};

use super::cards;
use super::exchange::{Exchange, path_param};
use super::failure::{A2aFailure, A2aResult};
use super::stream::{self, FrameFormat, TaskStream};
use super::{listing, push, service};
use crate::app::App;
use crate::problem::{ApiResult, Problem};
use crate::strict;

/// A REST request with its body and the ids of its path.
#[derive(Debug)]
pub struct RestCall {
    exchange: Exchange,
    form: WireForm,
    method: Method,
    uri: Uri,
    /// The error of a body that is not JSON by its headers.
    body: Result<Bytes, A2aError>,
    /// The id of a task with the verb behind it: `id:cancel`.
    task: Option<String>,
    config: Option<String>,
}

impl FromRequest<App> for RestCall {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let exchange =
            <Exchange as axum::extract::FromRequestParts<App>>::from_request_parts(&mut parts, app).await?;
        let task = path_param(&mut parts, app, "id").await;
        let config = path_param(&mut parts, app, "config").await;
        let (method, uri) = (parts.method.clone(), parts.uri.clone());
        let request = Request::from_parts(parts, body);
        let body = match strict::optional_body(request, app).await.map_err(A2aFailure::from) {
            Ok(body) => Ok(body),
            Err(A2aFailure::Protocol(error)) => Err(error),
            Err(A2aFailure::Http(problem)) => return Err(problem),
        };
        let form = form_of(uri.path());
        Ok(Self { exchange, form, method, uri, body, task, config })
    }
}

/// The version by the path: 0.3 has the prefix `/v1`, at the root or below an agent.
fn form_of(path: &str) -> WireForm {
    let below_agent = path.strip_prefix("/a2a/").and_then(|rest| rest.split_once('/'));
    let operation = below_agent.map_or(path.trim_start_matches('/'), |(_, operation)| operation);
    if operation.starts_with("v1/") { WireForm::V03Rest } else { WireForm::V10 }
}

impl RestCall {
    /// The body as JSON; absent is an empty object.
    fn json(&self) -> A2aResult<Value> {
        let body = self.body.as_ref().map_err(A2aError::clone)?;
        if body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Value::Object(Map::new()));
        }
        serde_json::from_slice(body).map_err(|_| A2aFailure::new(ErrorCode::Parse, ErrorCode::Parse.text()))
    }

    /// The query as an object, with numbers and flags as text.
    fn query(&self) -> Value {
        let pairs = form_urlencoded::parse(self.uri.query().unwrap_or_default().as_bytes());
        let value = |text: &str| match text {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            text => Value::String(text.to_owned()),
        };
        let members = pairs.into_iter().map(|(name, text)| (name.into_owned(), value(&text)));
        Value::Object(members.collect())
    }

    /// The task's id and the verb behind it.
    fn task(&self) -> A2aResult<(&str, Option<&str>)> {
        let text = self.task.as_deref().ok_or_else(A2aFailure::task_not_found)?;
        Ok(text.split_once(':').map_or((text, None), |(id, verb)| (id, Some(verb))))
    }

    fn push_query(&self) -> A2aResult<PushQuery> {
        Ok(PushQuery { task_id: self.task()?.0.to_owned(), config_id: self.config.clone() })
    }

    fn answer(&self, result: A2aResult<Value>) -> ApiResult<Response> {
        let mut response = match result {
            Ok(value) => Json(value).into_response(),
            Err(A2aFailure::Protocol(error)) => failed(&error, self.form),
            Err(A2aFailure::Http(problem)) => return Err(problem),
        };
        if self.form == WireForm::V10 {
            let kind = HeaderValue::from_static("application/a2a+json");
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
        }
        response.headers_mut().extend(self.exchange.extension_header(self.form));
        Ok(response)
    }

    fn streamed(&self, begun: A2aResult<TaskStream>) -> ApiResult<Response> {
        match begun {
            Ok(begun) => {
                let format = FrameFormat::Rest(self.form);
                let mut response = stream::respond(&self.exchange.app, &self.exchange.caller, begun, format);
                response.headers_mut().extend(self.exchange.extension_header(self.form));
                Ok(response)
            }
            Err(failure) => self.answer(Err(failure)),
        }
    }
}

fn failed(error: &A2aError, form: WireForm) -> Response {
    let status =
        StatusCode::from_u16(error.code.http_status(form)).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, Json(error.to_rest(form))).into_response()
}

pub async fn send(call: RestCall) -> ApiResult<Response> {
    let result = async {
        call.exchange.check_version()?;
        let params = call.form.decode_send_params(&call.json()?)?;
        let idempotency = call.exchange.idempotency(call.body.as_deref().unwrap_or_default());
        let task = service::send(&call.exchange, params, call.form, idempotency).await?;
        Ok(call.form.encode_send_result(&SendResult::Task(task)))
    };
    call.answer(result.await)
}

pub async fn send_streaming(call: RestCall) -> ApiResult<Response> {
    let begun = async {
        call.exchange.check_version()?;
        let params = call.form.decode_send_params(&call.json()?)?;
        let idempotency = call.exchange.idempotency(call.body.as_deref().unwrap_or_default());
        service::stream(&call.exchange, params, call.form, idempotency).await
    };
    call.streamed(begun.await)
}

/// `GET /tasks/{id}`, and `:subscribe`, for which the versions use different methods.
pub async fn task(call: RestCall) -> ApiResult<Response> {
    match call.task() {
        Ok((id, Some("subscribe"))) => {
            let begun = match call.exchange.check_version() {
                Ok(()) => service::subscribe(&call.exchange, id, call.form).await,
                Err(failure) => Err(failure),
            };
            call.streamed(begun)
        }
        Ok((id, None)) if call.method == Method::GET => {
            let result = async {
                call.exchange.check_version()?;
                let mut query = call.query();
                query["id"] = Value::String(id.to_owned());
                let query: TaskQuery = call.form.decode_task_query(&query)?;
                Ok(call.form.encode_task(&service::get(&call.exchange, &query).await?))
            };
            call.answer(result.await)
        }
        Ok((id, Some("cancel"))) if call.method == Method::POST => {
            let result = async {
                call.exchange.check_version()?;
                call.json()?;
                Ok(call.form.encode_task(&service::cancel(&call.exchange, id).await?))
            };
            call.answer(result.await)
        }
        Ok(_) => call
            .answer(Err(A2aFailure::new(ErrorCode::MethodNotFound, "there is no such operation on a task"))),
        Err(failure) => call.answer(Err(failure)),
    }
}

pub async fn tasks(call: RestCall) -> ApiResult<Response> {
    let result = async {
        call.exchange.check_version()?;
        let list = listing::list(&call.exchange, call.form.decode_list_query(&call.query())?).await?;
        Ok(call.form.encode_task_list(&list))
    };
    call.answer(result.await)
}

pub async fn set_push_config(call: RestCall) -> ApiResult<Response> {
    let result = async {
        call.exchange.check_version()?;
        let (task_id, _) = call.task()?;
        let config = call.form.decode_task_push_config(&call.json()?, Some(task_id))?;
        Ok(call.form.encode_task_push_config(&push::set(&call.exchange, config, call.form).await?))
    };
    call.answer(result.await)
}

pub async fn list_push_configs(call: RestCall) -> ApiResult<Response> {
    let result = async {
        call.exchange.check_version()?;
        let configs = push::list(&call.exchange, call.push_query()?).await?;
        Ok(call.form.encode_push_config_list(&configs))
    };
    call.answer(result.await)
}

pub async fn get_push_config(call: RestCall) -> ApiResult<Response> {
    let result = async {
        call.exchange.check_version()?;
        let config = push::get(&call.exchange, call.push_query()?).await?;
        Ok(call.form.encode_task_push_config(&config))
    };
    call.answer(result.await)
}

pub async fn delete_push_config(call: RestCall) -> ApiResult<Response> {
    let result = async {
        call.exchange.check_version()?;
        push::delete(&call.exchange, call.push_query()?).await?;
        Ok(Value::Object(Map::new()))
    };
    call.answer(result.await)
}

pub async fn extended_card(call: RestCall) -> ApiResult<Response> {
    let card = call.exchange.check_version().and_then(|()| cards::extended(&call.exchange, call.form));
    call.answer(card)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_tells_the_version() {
        for old in ["/v1/message:send", "/v1/tasks/1", "/a2a/assistant/v1/card", "/a2a/v1/v1/tasks"] {
            assert_eq!(form_of(old), WireForm::V03Rest, "{old}");
        }
        for new in ["/message:send", "/tasks/v1", "/a2a/assistant/tasks", "/a2a/v1/message:send"] {
            assert_eq!(form_of(new), WireForm::V10, "{new}");
        }
    }
}
