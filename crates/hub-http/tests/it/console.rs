//! The owner's console as a browser meets it, without one: pages, cookies, writes.

use callboard_domain::Scope;
use callboard_domain::limits::SIGN_IN_TRIES_MAX;
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, StatusCode};
use serde_json::json;

use crate::world::{Answer, EXECUTION, MODERN, SESSION, UNKNOWN, World, send};

const PASSWORD: &str = "correct horse battery";

/// A browser of the world: a client that keeps no cookie and follows nothing by itself.
struct Browser<'a> {
    world: &'a World,
    client: Client,
    cookie: Option<String>,
}

impl<'a> Browser<'a> {
    fn new(world: &'a World) -> Self {
        let client = Client::builder().no_proxy().redirect(Policy::none());
        Self {
            world,
            client: client.build().unwrap(),
            cookie: None,
        }
    }

    /// One that set the password through the one-time link.
    async fn signed_in(world: &'a World) -> Self {
        let mut browser = Self::new(world);
        let link = world.hub.make_setup_link();
        let answer = browser.set_up(&link, PASSWORD).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
        browser.take_cookie(&answer);
        browser
    }

    fn with_cookie(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.cookie {
            Some(cookie) => request.header("cookie", cookie),
            None => request,
        }
    }

    async fn get(&self, path: &str) -> Answer {
        send(self.with_cookie(self.client.get(self.world.url(path)))).await
    }

    /// A form as a page of the console sends it.
    async fn post(&self, path: &str, form: &str) -> Answer {
        let request = self
            .form(path, form)
            .header("sec-fetch-site", "same-origin");
        send(request).await
    }

    fn form(&self, path: &str, form: &str) -> RequestBuilder {
        let request = self.client.post(self.world.url(path));
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        self.with_cookie(request.body(form.to_owned()))
    }

    async fn set_up(&self, link: &str, password: &str) -> Answer {
        let form = format!("link={link}&password={}", password.replace(' ', "+"));
        self.post("/setup", &form).await
    }

    async fn sign_in(&self, password: &str, next: &str) -> Answer {
        let form = format!("next={next}&password={}", password.replace(' ', "+"));
        self.post("/sign-in", &form).await
    }

    fn take_cookie(&mut self, answer: &Answer) {
        let set = answer.headers["set-cookie"].to_str().unwrap();
        self.cookie = Some(set.split(';').next().unwrap().to_owned());
    }
}

fn location(answer: &Answer) -> &str {
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
    answer.headers["location"].to_str().unwrap()
}

#[tokio::test]
async fn without_a_sign_in_every_page_shows_the_door_and_no_form_does_anything() {
    let world = World::new().await;
    world.share().await;
    let id = world.queue("the-key-0001").await;
    let mut browser = Browser::new(&world);
    for cookie in [None, Some("callboard="), Some("callboard=cbw_unknown")] {
        browser.cookie = cookie.map(str::to_owned);
        for (path, way_back) in [
            ("/".to_owned(), "/".to_owned()),
            (
                "/runs?status=queued".to_owned(),
                "/runs%3Fstatus%3Dqueued".to_owned(),
            ),
            (format!("/runs/{id}"), format!("/runs/{id}")),
            ("/sign-ins".to_owned(), "/sign-ins".to_owned()),
        ] {
            let answer = browser.get(&path).await;
            assert_eq!(location(&answer), format!("/sign-in?next={way_back}"));
            assert!(!answer.text.contains(&id));
        }
        for path in [
            format!("/runs/{id}/cancel"),
            format!("/sign-ins/{id}/end"),
            "/sign-out".to_owned(),
        ] {
            let answer = browser.post(&path, "").await;
            assert!(location(&answer).starts_with("/sign-in"), "{path}");
        }
    }
    let run = world.hub.owned_run(&id).await.unwrap();
    assert_eq!(run.row.run.status().as_str(), "queued");
}

#[tokio::test]
async fn the_one_time_link_sets_the_password_and_works_once() {
    let world = World::new().await;
    let mut browser = Browser::new(&world);
    let asked = browser.get("/sign-in").await;
    assert!(asked.text.contains("No password is set yet"));
    let link = world.hub.make_setup_link();
    let form = browser.get(&format!("/setup?link={link}")).await;
    assert!(form.text.contains("Choose a password"));
    let refused = browser.set_up(&link, "too short").await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.text.contains("12 to 256 characters"));
    let answer = browser.set_up(&link, PASSWORD).await;
    assert_eq!(location(&answer), "/");
    let cookie = answer.headers["set-cookie"].to_str().unwrap();
    for part in ["HttpOnly", "SameSite=Lax", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    browser.take_cookie(&answer);
    assert_eq!(browser.get("/runs").await.status, StatusCode::OK);
    for late in [
        browser.get(&format!("/setup?link={link}")).await,
        browser.set_up(&link, "another good one").await,
    ] {
        assert_eq!(late.status, StatusCode::GONE);
    }
}

#[tokio::test]
async fn the_password_leads_to_the_page_that_was_asked_for_and_never_elsewhere() {
    let world = World::new().await;
    Browser::signed_in(&world).await;
    let mut browser = Browser::new(&world);
    let wrong = browser.sign_in("not the password", "/runs").await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(wrong.text.contains("That is not the password."));
    assert!(wrong.text.contains("value=\"/runs\""), "the way on is kept");
    let answer = browser.sign_in(PASSWORD, "%2Fruns%3Fstatus%3Dfailed").await;
    assert_eq!(location(&answer), "/runs?status=failed");
    for elsewhere in ["%2F%2Fevil.example", "https%3A%2F%2Fevil.example"] {
        let answer = browser.sign_in(PASSWORD, elsewhere).await;
        assert_eq!(location(&answer), "/");
    }
    browser.take_cookie(&answer);
    assert_eq!(
        browser
            .get("/sign-ins")
            .await
            .text
            .matches("Sign out<")
            .count(),
        5
    );
    let out = browser.post("/sign-out", "").await;
    assert!(
        out.headers["set-cookie"]
            .to_str()
            .unwrap()
            .contains("Max-Age=0")
    );
    assert_eq!(location(&browser.get("/").await), "/sign-in?next=/");
}

#[tokio::test]
async fn after_too_many_wrong_passwords_the_right_one_is_not_looked_at() {
    let world = World::new().await;
    Browser::signed_in(&world).await;
    let browser = Browser::new(&world);
    for _ in 0..SIGN_IN_TRIES_MAX {
        let wrong = browser.sign_in("not the password", "/").await;
        assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    }
    let answer = browser.sign_in(PASSWORD, "/").await;
    assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(answer.text.contains("callboard hub password reset"));
}

#[tokio::test]
async fn a_form_that_another_page_sends_changes_nothing() {
    let world = World::new().await;
    world.share().await;
    let id = world.queue("the-key-0001").await;
    let browser = Browser::signed_in(&world).await;
    let path = format!("/runs/{id}/cancel");
    let own = format!("http://{}", world.address);
    for (name, value) in [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("sec-fetch-site", "none"),
        ("origin", "http://127.0.0.1:1"),
        ("origin", "http://localhost:6274"),
        ("origin", "null"),
        ("x-nothing", "of both"),
    ] {
        let answer = send(browser.form(&path, "").header(name, value)).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{name}: {value}");
    }
    let run = world.hub.owned_run(&id).await.unwrap();
    assert_eq!(run.row.run.status().as_str(), "queued");
    let answer = send(browser.form(&path, "").header("origin", own)).await;
    assert_eq!(location(&answer), format!("/runs/{id}"), "an older browser");
}

#[tokio::test]
async fn the_owner_lists_reads_and_cancels_what_any_agent_started() {
    let world = World::new().await;
    world.share().await;
    let queued = world.queue("the-key-0001").await;
    let running = world.queue("the-key-0002").await;
    world.start(&running, EXECUTION).await;
    let browser = Browser::signed_in(&world).await;
    let list = browser.get("/runs").await.text;
    assert!(list.find(&running) < list.find(&queued), "newest first");
    for words in [
        "Folder report",
        "Claude",
        "Home",
        "laptop",
        "1 is running, 1 is queued.",
    ] {
        assert!(list.contains(words), "{words}");
    }
    let only = browser.get("/runs?status=running").await.text;
    assert!(only.contains(&running) && !only.contains(&queued));
    let none = browser.get("/runs?status=failed").await.text;
    assert!(none.contains("No run failed."));
    for id in [&queued, &running] {
        let ask = browser.get(&format!("/runs/{id}/cancel")).await.text;
        assert!(ask.contains("Cancel this run?") && ask.contains("Keep it"));
        for _ in 0..2 {
            let answer = browser.post(&format!("/runs/{id}/cancel"), "").await;
            assert_eq!(location(&answer), format!("/runs/{id}"));
        }
    }
    let page = browser.get(&format!("/runs/{queued}")).await.text;
    assert!(page.contains("Cancelled before it started."));
    let page = browser.get(&format!("/runs/{running}")).await.text;
    assert!(page.contains("Cancelling") && !page.contains("/cancel\""));
    let asked_late = browser.get(&format!("/runs/{queued}/cancel")).await;
    assert_eq!(location(&asked_late), format!("/runs/{queued}"));
    for path in [format!("/runs/{UNKNOWN}"), "/runs/no-id".to_owned()] {
        let answer = browser.get(&path).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
        assert!(answer.text.contains("There is no such run"));
    }
}

#[tokio::test]
async fn pages_carry_a_policy_that_runs_nothing_of_others() {
    let world = World::new().await;
    let browser = Browser::signed_in(&world).await;
    let outside = Browser::new(&world);
    for answer in [
        browser.get("/runs").await,
        browser.get("/sign-ins").await,
        browser.get("/runs/no-id").await,
        outside.get("/sign-in").await,
        outside.get("/setup?link=x").await,
        outside.get("/runs").await,
    ] {
        let header = |name: &str| answer.headers[name].to_str().unwrap();
        let policy = header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; style-src 'self'; script-src 'self';"));
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"));
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("referrer-policy"), "same-origin");
        assert_eq!(header("cache-control"), "no-store");
        for inline in ["<script", " style=", " onclick=", "<style"] {
            assert!(!answer.text.contains(inline), "{inline}");
        }
    }
    let sheet = browser.get("/runs").await.text;
    let href = sheet.split("stylesheet\" href=\"").nth(1).unwrap();
    let sheet = outside.get(href.split('"').next().unwrap()).await;
    assert_eq!(sheet.headers["content-type"], "text/css; charset=utf-8");
}

/// B44: what chats, agents and machines said is text on every page.
#[tokio::test]
async fn foreign_text_is_text() {
    const PROBES: [&str; 4] = [
        "\"><img src=x onerror=alert(1)>",
        "</textarea></code><script>alert(1)</script>",
        "<svg onload=alert(1)>{{7*7}}",
        "'\u{202e}&lt;b&gt;",
    ];
    let world = World::new().await;
    let browser = Browser::signed_in(&world).await;
    for (n, probe) in PROBES.into_iter().enumerate() {
        let session = json!({
            "graph_session_id": SESSION.to_string(), "name": probe, "description": probe,
            "slug": "report", "version": 1, "status": "ready",
        });
        assert_eq!(world.sync(json!([session])).await.status, StatusCode::OK);
        let agent = format!("{n}{probe}");
        let token = world.connect(&agent, &[Scope::Read, Scope::Run]).await;
        let arguments = json!({
            "graph_session_id": SESSION.to_string(), "idempotency_key": "the-key-0001",
            "arguments": {"topic": probe},
        });
        let queued = world.call_as(&token, MODERN, "run_graph_session", arguments);
        let id = queued.await.tool()["command_id"]
            .as_str()
            .unwrap()
            .to_owned();
        let execution = format!("22222222-2222-4222-8222-22222222222{n}");
        world.start(&id, &execution).await;
        let told = json!({"phase": probe});
        world.relay(&format!("/commands/{id}/control"), told).await;
        let running = browser.get(&format!("/runs/{id}")).await.text;
        let body = json!({
            "execution_id": execution, "status": "failed", "error": probe,
            "result": {"said": probe},
        });
        let done = world.complete(&id, body).await;
        assert_eq!(done.status, StatusCode::OK, "{}", done.text);
        let pages = [
            running,
            browser.get("/runs").await.text,
            browser.get(&format!("/runs/{id}")).await.text,
            browser
                .get(&format!("/runs?status=failed&before={id}"))
                .await
                .text,
            browser
                .get(&format!("/runs?status={}", "%22%3E%3Cscript%3E"))
                .await
                .text,
            browser
                .get(&format!("/sign-in?next={}", "%22%3E%3Cscript%3E"))
                .await
                .text,
        ];
        for page in &pages {
            for raw in ["<img", "<script", "<svg onload", "&lt;b&gt;</"] {
                assert!(!page.contains(raw), "{raw} in {page}");
            }
        }
        let is_kept = !probe.contains("{{") || pages[2].contains("{{7*7}}");
        assert!(is_kept, "nothing is computed");
        assert!(pages[2].contains("Why it failed"));
    }
}
