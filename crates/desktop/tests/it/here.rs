//! A desktop in this process, and the hub that it works for.

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use callboard_agents::{Agents, ScriptedProvider};
use callboard_ambient::{Clock, Entropy};
use callboard_desktop::control::{Control, Request, Response};
use callboard_desktop::{Activity, Desktop, DesktopConfig, RunError};
use callboard_fleet::Launcher;
use tempfile::TempDir;
use tokio::sync::broadcast;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::hub::{Hub, TOKEN};

/// Runs a test's future, never longer than a minute.
pub(crate) fn block_on<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let bounded = tokio::time::timeout(Duration::from_secs(60), Box::pin(test));
        bounded.await.expect("the test ends")
    })
}

pub(crate) fn launcher() -> Launcher {
    Launcher {
        program: std::env::current_exe().unwrap(),
        arguments: vec![crate::SCRIPT.into()],
    }
}

/// Short intervals, so that what waits for the next turn does not make a test wait.
pub(crate) fn config(data_dir: &Path, hub_url: &str) -> DesktopConfig {
    DesktopConfig {
        agents: Agents::scripted(ScriptedProvider::echo()),
        sync_interval_ms: 500,
        control_interval_ms: 100,
        ..DesktopConfig::new(
            data_dir.to_owned(),
            hub_url.to_owned(),
            TOKEN.to_owned(),
            launcher(),
        )
    }
}

/// A Graph around a body.
pub(crate) fn graph(name: &str, body: &str) -> String {
    format!("export const meta = {{ name: '{name}', description: 'for a test' }};\n{body}\n")
}

/// Echoes its arguments.
pub(crate) const ECHO: &str = "return args;";
/// Runs until it is stopped.
pub(crate) const FOREVER: &str = "phase('waiting'); await sleep(600000); return 1;";

pub(crate) struct Here {
    pub(crate) hub: Hub,
    pub(crate) folder: TempDir,
    pub(crate) control: Control,
    activity: broadcast::Receiver<Activity>,
    shutdown: CancellationToken,
    ended: JoinHandle<Result<(), RunError>>,
}

impl Here {
    /// A desktop whose owner saved `graphs`, enabled Home, and shared them with it.
    pub(crate) async fn sharing(graphs: &[(&str, &str)]) -> Self {
        let here = Self::start(Hub::start().await, |_| {}).await;
        here.knows_projects().await;
        for (slug, body) in graphs {
            here.add(slug, body).await;
        }
        here.ask(Request::ProjectEnable {
            project: "home".into(),
        })
        .await;
        for (slug, _) in graphs {
            here.share(slug).await;
        }
        let slugs: Vec<_> = graphs.iter().map(|(slug, _)| *slug).collect();
        here.hub.listed(crate::hub::HOME, &slugs).await;
        here
    }

    pub(crate) async fn start(hub: Hub, adapt: impl FnOnce(&mut DesktopConfig)) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), hub, adapt).await
    }

    pub(crate) async fn start_in(
        folder: TempDir,
        hub: Hub,
        adapt: impl FnOnce(&mut DesktopConfig),
    ) -> Self {
        let mut config = config(folder.path(), &hub.url);
        adapt(&mut config);
        let opened = Desktop::open(config, Clock::system(), Entropy::system()).await;
        let desktop = opened.unwrap();
        let control = desktop.control();
        let activity = desktop.activity();
        let shutdown = CancellationToken::new();
        let ended = tokio::spawn(desktop.run(shutdown.clone()));
        Self {
            hub,
            folder,
            control,
            activity,
            shutdown,
            ended,
        }
    }

    /// Tells the desktop to stop, without waiting.
    pub(crate) fn begin_stop(&self) {
        self.shutdown.cancel();
    }

    /// Stops the desktop, and gives back what it worked with.
    pub(crate) async fn stop(self) -> (TempDir, Hub) {
        self.shutdown.cancel();
        self.ended.await.unwrap().unwrap();
        (self.folder, self.hub)
    }

    pub(crate) async fn knows_projects(&self) {
        loop {
            let answer = self.ask(Request::ProjectList).await;
            if matches!(&answer, Response::Projects(projects) if !projects.is_empty()) {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Asks, and expects no refusal.
    pub(crate) async fn ask(&self, request: Request) -> Response {
        let answer = self.control.call(request.clone()).await;
        if let Response::Refused(refused) = &answer {
            panic!("{request:?} is refused: {refused:?}");
        }
        answer
    }

    /// Asks, and expects a refusal.
    pub(crate) async fn refused(&self, request: Request) -> callboard_desktop::control::Refused {
        match self.control.call(request.clone()).await {
            Response::Refused(refused) => refused,
            answer => panic!("{request:?} is answered: {answer:?}"),
        }
    }

    pub(crate) async fn add(&self, slug: &str, body: &str) {
        let source = graph(slug, body);
        self.ask(Request::GraphAdd { source, slug: None }).await;
    }

    pub(crate) async fn share(&self, slug: &str) {
        let (slug, project) = (slug.to_owned(), "Home".to_owned());
        self.ask(Request::GraphShare { slug, project }).await;
    }

    pub(crate) async fn unshare(&self, slug: &str) {
        let (slug, project) = (slug.to_owned(), "Home".to_owned());
        self.ask(Request::GraphUnshare { slug, project }).await;
    }

    pub(crate) async fn status(&self) -> callboard_desktop::control::StatusReport {
        match self.ask(Request::Status).await {
            Response::Status(report) => *report,
            answer => panic!("{answer:?}"),
        }
    }

    pub(crate) async fn run(&self, id: impl ToString) -> callboard_desktop::control::RunDetail {
        match self.ask(Request::RunShow { id: id.to_string() }).await {
            Response::Run(detail) => *detail,
            answer => panic!("{answer:?}"),
        }
    }

    pub(crate) async fn run_list(&self) -> Vec<callboard_desktop::control::RunSummary> {
        match self.ask(Request::RunList { limit: 100 }).await {
            Response::Runs(runs) => runs,
            answer => panic!("{answer:?}"),
        }
    }

    /// The first event from the start of the desktop on that `wanted` takes.
    pub(crate) async fn event<T>(&mut self, wanted: impl Fn(&Activity) -> Option<T>) -> T {
        loop {
            let event = self.activity.recv().await.unwrap();
            if let Some(found) = wanted(&event) {
                return found;
            }
        }
    }
}
