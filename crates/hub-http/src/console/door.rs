//! The door: the one-time link, and signing in with the password.

use askama::Template;
use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use callboard_ambient::Entropy;
use callboard_hub::{HubError, hash_password};
use callboard_store::Store;
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;

use super::session::{own_path, with_cookie};
use super::{Message, failed, page, see_other};
use crate::SharedHub;

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage<'a> {
    next: &'a str,
    error: Option<&'a str>,
    /// No password was set yet.
    is_new: bool,
}

#[derive(Template)]
#[template(path = "setup.html")]
struct SetupPage<'a> {
    link: &'a str,
    error: Option<&'a str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Wanted {
    next: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Link {
    link: String,
}

#[derive(Deserialize)]
pub(super) struct SignInForm {
    #[serde(default)]
    next: String,
    password: String,
}

#[derive(Deserialize)]
pub(super) struct SetupForm {
    link: String,
    password: String,
}

const NOT_A_FORM: &str = "The form did not arrive whole. Send it again.";

pub(super) async fn sign_in_page<S: Store>(
    State(shared): State<SharedHub<S>>,
    Query(wanted): Query<Wanted>,
) -> Response {
    let (is_new, error) = match shared.hub.password().await {
        Ok(stored) => (stored.is_none(), None),
        Err(HubError::Invalid(sentence)) => (false, Some(sentence)),
        Err(error) => return failed(&error),
    };
    let form = SignInPage {
        next: own_path(&wanted.next),
        error: error.as_deref(),
        is_new,
    };
    page(StatusCode::OK, &form)
}

pub(super) async fn sign_in<S: Store>(
    State(shared): State<SharedHub<S>>,
    headers: HeaderMap,
    form: Result<Form<SignInForm>, FormRejection>,
) -> Response {
    let Ok(Form(form)) = form else {
        return failed(&HubError::Invalid(NOT_A_FORM.to_owned()));
    };
    let again = |status, error: &str, is_new| {
        let form = SignInPage {
            next: own_path(&form.next),
            error: Some(error),
            is_new,
        };
        page(status, &form)
    };
    let stored = match shared.hub.password().await {
        Ok(Some(stored)) => stored,
        Ok(None) => return again(StatusCode::OK, "No password is set yet.", true),
        Err(HubError::Invalid(sentence)) => {
            return again(StatusCode::TOO_MANY_REQUESTS, &sentence, false);
        }
        Err(error) => return failed(&error),
    };
    shared.hub.note_try();
    let (given, known) = (form.password.clone(), stored.clone());
    let is_right = tokio::task::spawn_blocking(move || known.is(&given)).await;
    if !is_right.unwrap_or(false) {
        return again(
            StatusCode::UNPROCESSABLE_ENTITY,
            "That is not the password.",
            false,
        );
    }
    match shared.hub.sign_in(&stored, user_agent(&headers)).await {
        Ok(Some(created)) => {
            let response = see_other(own_path(&form.next));
            with_cookie(&shared.options, response, &created.token)
        }
        Ok(None) => again(
            StatusCode::UNPROCESSABLE_ENTITY,
            "The password was changed meanwhile.",
            false,
        ),
        Err(error) => failed(&error),
    }
}

pub(super) async fn setup_page<S: Store>(
    State(shared): State<SharedHub<S>>,
    Query(link): Query<Link>,
) -> Response {
    if !shared.hub.is_setup_link(&link.link) {
        return link_is_over();
    }
    let form = SetupPage {
        link: &link.link,
        error: None,
    };
    page(StatusCode::OK, &form)
}

pub(super) async fn set_up<S: Store>(
    State(shared): State<SharedHub<S>>,
    headers: HeaderMap,
    form: Result<Form<SetupForm>, FormRejection>,
) -> Response {
    let Ok(Form(form)) = form else {
        return failed(&HubError::Invalid(NOT_A_FORM.to_owned()));
    };
    if !shared.hub.is_setup_link(&form.link) {
        return link_is_over();
    }
    let password = form.password.clone();
    let hashed = tokio::task::spawn_blocking(move || hash_password(&password, &Entropy::system()));
    let hash = match hashed.await {
        Ok(Ok(hash)) => hash,
        Ok(Err(HubError::Invalid(sentence))) => {
            let form = SetupPage {
                link: &form.link,
                error: Some(&sentence),
            };
            return page(StatusCode::UNPROCESSABLE_ENTITY, &form);
        }
        Ok(Err(error)) => return failed(&error),
        Err(_) => return failed(&HubError::Unavailable),
    };
    let user_agent = user_agent(&headers);
    match shared.hub.set_up(&form.link, hash, user_agent).await {
        Ok(Some(created)) => with_cookie(&shared.options, see_other("/"), &created.token),
        Ok(None) => link_is_over(),
        Err(error) => failed(&error),
    }
}

fn link_is_over() -> Response {
    let message = Message {
        title: "This link works no more",
        text: "It works once, for a day, until the hub stops or prints another one. `callboard hub \
               password reset` on the hub's machine prints a new one.",
        href: "/sign-in",
        way_on: "Sign in",
    };
    page(StatusCode::GONE, &message)
}

fn user_agent(headers: &HeaderMap) -> &str {
    let value = headers.get(header::USER_AGENT);
    let text = value.and_then(|value| value.to_str().ok());
    text.unwrap_or("A browser that does not say its name")
}
