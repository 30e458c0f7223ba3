//! Which browsers are signed in, and ending that.

use askama::Template;
use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use callboard_store::Store;
use http::StatusCode;

use super::session::{Browser, without_cookie};
use super::words::{Moment, moment};
use super::{failed, page, see_other};
use crate::SharedHub;

#[derive(Template)]
#[template(path = "sign_ins.html")]
struct SignInsPage {
    here: &'static str,
    rows: Vec<Row>,
}

struct Row {
    id: String,
    browser: String,
    is_this: bool,
    since: Moment,
    until: Moment,
}

pub(super) async fn list<S: Store>(
    State(shared): State<SharedHub<S>>,
    Extension(this): Browser,
) -> Response {
    let sign_ins = match shared.hub.sign_ins().await {
        Ok(sign_ins) => sign_ins,
        Err(error) => return failed(&error),
    };
    let rows = sign_ins.into_iter().map(|sign_in| Row {
        id: sign_in.id.to_string(),
        browser: sign_in.user_agent,
        is_this: sign_in.id == this.id,
        since: moment(sign_in.signed_in_at),
        until: moment(sign_in.expires_at),
    });
    let list = SignInsPage {
        here: "sign-ins",
        rows: rows.collect(),
    };
    page(StatusCode::OK, &list)
}

pub(super) async fn end<S: Store>(
    State(shared): State<SharedHub<S>>,
    Extension(this): Browser,
    Path(id): Path<String>,
) -> Response {
    match shared.hub.sign_out(&id).await {
        Ok(()) if id == this.id.to_string() => {
            without_cookie(&shared.options, see_other("/sign-in"))
        }
        Ok(()) => see_other("/sign-ins"),
        Err(error) => failed(&error),
    }
}

pub(super) async fn sign_out<S: Store>(
    State(shared): State<SharedHub<S>>,
    Extension(this): Browser,
) -> Response {
    match shared.hub.sign_out(&this.id.to_string()).await {
        Ok(()) => without_cookie(&shared.options, see_other("/sign-in")),
        Err(error) => failed(&error),
    }
}
