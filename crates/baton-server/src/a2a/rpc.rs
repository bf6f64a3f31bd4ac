//! JSON-RPC: one path, the method in the body.

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use baton_a2a::jsonrpc::{self, Method, RequestId};
use baton_a2a::model::{SendResult, TaskList};
use baton_a2a::{A2aError, ErrorCode, WireForm};
use serde_json::Value;

use super::cards;
use super::exchange::Exchange;
use super::failure::{A2aFailure, A2aResult};
use super::stream::{self, FrameFormat, TaskStream};
use super::{listing, push, service};
use crate::identity::roles::{AGENT_READ, THREAD_READ, THREAD_WRITE};
use crate::problem::ApiResult;
use crate::strict;

/// Handles every method.
pub async fn handle(exchange: Exchange, request: Request) -> ApiResult<Response> {
    let body = match strict::body(request, &exchange.app).await.map_err(A2aFailure::from) {
        Ok(body) => body,
        Err(A2aFailure::Protocol(error)) => return Ok(failed(&RequestId::Null, &error, WireForm::V03)),
        Err(A2aFailure::Http(problem)) => return Err(problem),
    };
    let request = match jsonrpc::Request::parse(&body) {
        Ok(request) => request,
        Err(refused) => return Ok(failed(&refused.id, &refused.error, WireForm::V03)),
    };
    let (id, name) = (request.id.clone(), request.method.as_str());
    let parsed = Method::parse(name);
    let form = parsed.map_or(WireForm::V03, |(_, form)| form);
    let outcome = match parsed {
        // 0.3 has no list of tasks.
        None | Some((Method::ListTasks, WireForm::V03)) => {
            let message = format!("Method not found: {}", name.chars().take(60).collect::<String>());
            Err(A2aFailure::new(ErrorCode::MethodNotFound, message))
        }
        Some((method, _)) => match exchange.check_version() {
            Ok(()) => call(&exchange, method, form, &id, &request.params, &body).await,
            Err(failure) => Err(failure),
        },
    };
    let mut response = match outcome {
        Ok(response) => response,
        Err(A2aFailure::Protocol(error)) => failed(&id, &error, form),
        Err(A2aFailure::Http(problem)) => return Err(problem),
    };
    response.headers_mut().extend(exchange.extension_header(form));
    Ok(response)
}

/// Whether a body is a request to cancel a task.
pub fn is_cancel(body: &[u8]) -> bool {
    let parsed = jsonrpc::Request::parse(body).ok().and_then(|request| Method::parse(&request.method));
    matches!(parsed, Some((Method::CancelTask, _)))
}

/// Errors have the status 200: the envelope says what they are.
fn failed(id: &RequestId, error: &A2aError, form: WireForm) -> Response {
    Json(jsonrpc::failure(id, error, form)).into_response()
}

async fn call(
    exchange: &Exchange,
    method: Method,
    form: WireForm,
    id: &RequestId,
    params: &Value,
    body: &Bytes,
) -> A2aResult<Response> {
    let format = FrameFormat::Rpc(id.clone(), form);
    match method {
        Method::Stream => {
            service::demand(exchange, THREAD_WRITE).await?;
            let params = form.decode_send_params(params)?;
            let idempotency = exchange.idempotency(body);
            Ok(streamed(exchange, service::stream(exchange, params, form, idempotency).await, format)?)
        }
        Method::Subscribe => {
            service::demand(exchange, THREAD_READ).await?;
            let query = form.decode_task_query(params)?;
            Ok(streamed(exchange, service::subscribe(exchange, &query.id, form).await, format)?)
        }
        other => {
            let result = result(exchange, other, form, params, body).await?;
            Ok(Json(jsonrpc::success(id, result)).into_response())
        }
    }
}

/// An error after the parameters were accepted is an event, because clients that requested a stream read nothing else.
fn streamed(exchange: &Exchange, begun: A2aResult<TaskStream>, format: FrameFormat) -> A2aResult<Response> {
    match begun {
        Ok(begun) => Ok(stream::respond(&exchange.app, &exchange.caller, begun, format)),
        Err(A2aFailure::Protocol(error)) => Ok(stream::event_stream(Body::from(format.error(&error)))),
        Err(failure) => Err(failure),
    }
}

async fn result(
    exchange: &Exchange,
    method: Method,
    form: WireForm,
    params: &Value,
    body: &Bytes,
) -> A2aResult<Value> {
    let permission = match method {
        Method::Send | Method::SetPushConfig | Method::DeletePushConfig => THREAD_WRITE,
        Method::ExtendedCard => AGENT_READ,
        _ => THREAD_READ,
    };
    service::demand(exchange, permission).await?;
    Ok(match method {
        Method::Send => {
            let params = form.decode_send_params(params)?;
            let task = service::send(exchange, params, form, exchange.idempotency(body)).await?;
            form.encode_send_result(&SendResult::Task(task))
        }
        Method::GetTask => form.encode_task(&service::get(exchange, &form.decode_task_query(params)?).await?),
        Method::CancelTask => {
            form.encode_task(&service::cancel(exchange, &form.decode_task_query(params)?.id).await?)
        }
        Method::ListTasks => {
            let list: TaskList = listing::list(exchange, form.decode_list_query(params)?).await?;
            form.encode_task_list(&list)
        }
        Method::SetPushConfig => {
            let config = form.decode_task_push_config(params, None)?;
            form.encode_task_push_config(&push::set(exchange, config, form).await?)
        }
        Method::GetPushConfig => {
            form.encode_task_push_config(&push::get(exchange, form.decode_push_query(params)?).await?)
        }
        Method::ListPushConfigs => {
            form.encode_push_config_list(&push::list(exchange, form.decode_push_query(params)?).await?)
        }
        Method::DeletePushConfig => {
            push::delete(exchange, form.decode_push_query(params)?).await?;
            if form == WireForm::V10 { Value::Object(serde_json::Map::new()) } else { Value::Null }
        }
        Method::ExtendedCard => cards::extended(exchange, form)?,
        Method::Stream | Method::Subscribe => unreachable!("streams are handled by the caller"),
    })
}
