//! The hub's own socket: how its commands reach it while it runs. Mode 0600, one JSON line each
//! way. Where no hub runs, the commands open the database themselves.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use callboard_domain::limits::{BODY_BYTES_MAX, TASK_LEASE_MS_DEFAULT};
use callboard_hub::Hub;
use callboard_store::Store;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader,
};
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;

use super::{AdminAnswer, AdminRequest, open_hub, perform};
use crate::failure::Failure;
use crate::paths;

/// Longest line on the socket, in bytes: an uploaded file in base64.
const LINE_BYTES_MAX: u64 = BODY_BYTES_MAX as u64;
/// How long one side waits for the other.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Serves the socket until `shutdown`. The caller holds the lock of the database, so a socket that
/// is there already belongs to nobody.
pub(super) fn serve<S: Store>(
    hub: Arc<Hub<S>>,
    data: &Path,
    base: String,
    shutdown: CancellationToken,
) -> Result<(), Failure> {
    let path = paths::hub_socket(data);
    let failed = |error: std::io::Error| {
        Failure::cannot_start(format!(
            "cannot open the socket {}: {error}",
            path.display()
        ))
        .hint("choose a shorter or writable folder with --data")
    };
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
        Ok(()) | Err(_) => {}
    }
    // The folder is 0700, so nobody else can connect before the mode is set.
    let listener = UnixListener::bind(&path).map_err(failed)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    tokio::spawn(async move {
        loop {
            let accepted = tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    let (hub, base) = (Arc::clone(&hub), base.clone());
                    tokio::spawn(async move { answer(&hub, &base, stream).await });
                }
                Err(error) => {
                    tracing::warn!(%error, "the hub's socket cannot accept a call");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
        drop(std::fs::remove_file(&path));
    });
    Ok(())
}

async fn answer<S: Store>(hub: &Hub<S>, base: &str, stream: UnixStream) {
    let (reader, mut writer) = stream.into_split();
    let request = tokio::time::timeout(TIMEOUT, read_line(reader)).await;
    let answer = match request.map(|line| line.map(|line| serde_json::from_str(&line))) {
        Ok(Ok(Ok(request))) => perform(hub, Some(base), request).await,
        Ok(Ok(Err(_))) => {
            let message = "this hub does not know that request: use the same version for both";
            AdminAnswer::Refused {
                message: message.to_owned(),
                hint: None,
            }
        }
        // Nobody is left to answer.
        Ok(Err(_)) | Err(_) => return,
    };
    if let Ok(line) = serde_json::to_string(&answer) {
        drop(writer.write_all(format!("{line}\n").as_bytes()).await);
    }
}

async fn read_line(reader: impl AsyncRead + Unpin) -> std::io::Result<String> {
    let mut line = String::new();
    BufReader::new(reader.take(LINE_BYTES_MAX))
        .read_line(&mut line)
        .await?;
    if line.ends_with('\n') {
        Ok(line)
    } else {
        Err(ErrorKind::UnexpectedEof.into())
    }
}

/// Asks the hub of this data folder: the running one, or else the database directly.
pub(crate) async fn ask(data: &Path, request: AdminRequest) -> Result<AdminAnswer, Failure> {
    let answer = match UnixStream::connect(paths::hub_socket(data)).await {
        Ok(stream) => ask_running(stream, &request).await?,
        // Whoever asks for what is there, in a folder where no hub ever was, has mistyped it.
        Err(_) if !request.makes_something() && is_without_hub(data) => {
            let message = format!("there is no hub in {}", data.display());
            return Err(Failure::usage(message).hint(
                "name its folder with --data, or make one with `callboard up` or `callboard hub \
                 project create NAME`",
            ));
        }
        Err(_) => perform(&*open_hub(data, TASK_LEASE_MS_DEFAULT)?, None, request).await,
    };
    match answer {
        AdminAnswer::Refused { message, hint } => Err(match hint {
            Some(hint) => Failure::failed(message).hint(hint),
            None => Failure::failed(message),
        }),
        AdminAnswer::Project { .. }
        | AdminAnswer::Projects { .. }
        | AdminAnswer::Secret { .. }
        | AdminAnswer::SetupLink { .. }
        | AdminAnswer::Desktops { .. }
        | AdminAnswer::Tokens { .. }
        | AdminAnswer::Disconnected { .. }
        | AdminAnswer::Chats(_)
        | AdminAnswer::Done { .. } => Ok(answer),
    }
}

/// Whether there is no database. A data folder that is none is told by whoever opens it.
fn is_without_hub(data: &Path) -> bool {
    let found = std::fs::metadata(paths::hub_database(data));
    found.is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

async fn ask_running(stream: UnixStream, request: &AdminRequest) -> Result<AdminAnswer, Failure> {
    let lost =
        |what: String| Failure::cannot_start(format!("the running hub did not answer: {what}"));
    let (reader, mut writer) = stream.into_split();
    let line = serde_json::to_string(request).map_err(|error| lost(error.to_string()))?;
    let exchange = async {
        writer.write_all(format!("{line}\n").as_bytes()).await?;
        read_line(reader).await
    };
    let line = tokio::time::timeout(TIMEOUT, exchange)
        .await
        .map_err(|_| lost("it took longer than 30 s".to_owned()))?
        .map_err(|error| lost(error.to_string()))?;
    serde_json::from_str(&line).map_err(|error| lost(error.to_string()))
}
