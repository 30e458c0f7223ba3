//! What the owner does on the hub's own machine.

use callboard_domain::limits::NAME_UTF16_MAX;
use callboard_domain::{
    ConnectionId, DesktopId, OwnerId, ProjectId, Refusal, Scopes, Timestamp, ends_line, is_blank,
    utf16_len,
};
use callboard_store::{
    Connection, Desktop, NewConnection, NewDesktop, NewProject, Project, Revoked, Store,
};

use crate::{Hub, HubError, Topic, token_hash};

/// Something that was made together with its bearer token, which is shown once and stored hashed.
#[derive(Debug, Clone)]
pub struct Created<T> {
    /// What was made.
    pub made: T,
    /// Its bearer token.
    pub token: String,
}

/// A desktop and whether it is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesktopSummary {
    /// The desktop.
    pub desktop: Desktop,
    /// It called within 60 s, or holds a wake-up call.
    pub online: bool,
    /// Its last sign of life.
    pub last_seen_at: Option<Timestamp>,
}

impl<S: Store> Hub<S> {
    /// The one owner of this hub.
    ///
    /// # Errors
    /// [`HubError::Unavailable`].
    pub async fn owner(&self) -> Result<OwnerId, HubError> {
        let now = self.clock.now();
        let fresh = OwnerId::from_bytes(self.entropy.uuid_v7(now));
        Ok(self.store.ensure_owner(fresh, now).await?)
    }

    /// Makes a project.
    ///
    /// # Errors
    /// [`HubError::Invalid`] for a name that is empty, too long or taken.
    pub async fn create_project(&self, name: &str) -> Result<Project, HubError> {
        let (owner_id, now) = (self.owner().await?, self.clock.now());
        let id = ProjectId::from_bytes(self.entropy.uuid_v7(now));
        let project = Project {
            id,
            owner_id,
            name: checked_name(name)?,
        };
        Ok(self
            .store
            .create_project(NewProject { project, now })
            .await?)
    }

    /// The owner's projects, oldest first.
    ///
    /// # Errors
    /// [`HubError::Unavailable`].
    pub async fn projects(&self) -> Result<Vec<Project>, HubError> {
        Ok(self.store.projects(self.owner().await?).await?)
    }

    /// Makes a desktop and its device token.
    ///
    /// # Errors
    /// [`HubError::Invalid`] for a name that is empty, too long or taken.
    pub async fn create_desktop(&self, name: &str) -> Result<Created<Desktop>, HubError> {
        let (owner_id, now) = (self.owner().await?, self.clock.now());
        let token = self.entropy.secret("cbd_");
        let id = DesktopId::from_bytes(self.entropy.uuid_v7(now));
        let name = checked_name(name)?;
        let new = NewDesktop {
            id,
            owner_id,
            name,
            token_hash: token_hash(&token),
            now,
        };
        Ok(Created {
            made: self.store.create_desktop(new).await?,
            token,
        })
    }

    /// The owner's desktops and whether they are there.
    ///
    /// # Errors
    /// [`HubError::Unavailable`].
    pub async fn desktops(&self) -> Result<Vec<DesktopSummary>, HubError> {
        let desktops = self.store.desktops(self.owner().await?).await?;
        let summary = |desktop: Desktop| DesktopSummary {
            online: self.presence.is_online(desktop.id, desktop.last_seen_at),
            last_seen_at: self.presence.last_seen_at(desktop.id, desktop.last_seen_at),
            desktop,
        };
        Ok(desktops.into_iter().map(summary).collect())
    }

    /// Frees a desktop identity from its data folder.
    ///
    /// # Errors
    /// [`HubError::Invalid`] when there is no desktop of that name.
    pub async fn rebind_desktop(&self, name: &str) -> Result<(), HubError> {
        let owner_id = self.owner().await?;
        if self.store.rebind_desktop(owner_id, name.to_owned()).await? {
            return Ok(());
        }
        Err(HubError::Invalid(format!(
            "There is no desktop named `{name}`."
        )))
    }

    /// Makes a connection and its bearer token, and adds it to the named projects in their order.
    ///
    /// # Errors
    /// [`HubError::Invalid`] for a name that is empty, too long or taken, no scope, or a project
    /// that does not exist.
    pub async fn create_connection(
        &self,
        name: &str,
        project_names: &[String],
        scopes: Scopes,
    ) -> Result<Created<Connection>, HubError> {
        let (owner_id, now) = (self.owner().await?, self.clock.now());
        if scopes == Scopes::default() {
            return Err(HubError::Invalid("Name at least one scope.".to_owned()));
        }
        let owned = self.store.projects(owner_id).await?;
        let mut projects = Vec::new();
        for name in project_names {
            let found = owned.iter().find(|project| project.name == *name);
            let project = found
                .ok_or_else(|| HubError::Invalid(format!("There is no project named `{name}`.")))?;
            if !projects.contains(&project.id) {
                projects.push(project.id);
            }
        }
        let token = self.entropy.secret("cb_");
        let new = NewConnection {
            id: ConnectionId::from_bytes(self.entropy.uuid_v7(now)),
            owner_id,
            name: checked_name(name)?,
            token_hash: token_hash(&token),
            scopes,
            projects,
            now,
        };
        Ok(Created {
            made: self.store.create_connection(new).await?,
            token,
        })
    }

    /// The owner's connections that are not revoked.
    ///
    /// # Errors
    /// [`HubError::Unavailable`].
    pub async fn connections(&self) -> Result<Vec<Connection>, HubError> {
        Ok(self.store.connections(self.owner().await?).await?)
    }

    /// Revokes a connection: its token stops working at once, its queued commands end cancelled
    /// with the published sentence, its running ones are asked to stop, its linked chats are
    /// revoked. Gives what changed.
    ///
    /// # Errors
    /// [`HubError::Invalid`] when there is no connection of that name.
    pub async fn revoke_connection(&self, name: &str) -> Result<Revoked, HubError> {
        let (owner_id, now) = (self.owner().await?, self.clock.now());
        let changed = self
            .store
            .revoke_connection(owner_id, name.to_owned(), now)
            .await?;
        let changed = changed
            .ok_or_else(|| HubError::Invalid(format!("There is no connection named `{name}`.")))?;
        for row in &changed.runs {
            self.signals.moved(Topic::Run(row.command_id));
            self.signals
                .moved(Topic::Work(row.desktop_id, row.project_id));
        }
        Ok(changed)
    }

    /// Whether the store can answer now.
    ///
    /// # Errors
    /// [`HubError::Unavailable`] when it cannot.
    pub async fn ready(&self) -> Result<(), HubError> {
        Ok(self.store.ready().await?)
    }
}

fn checked_name(name: &str) -> Result<String, HubError> {
    one_line("A name", name, NAME_UTF16_MAX)
}

/// What people read in one line: trimmed, neither empty nor too long, without what ends a line
/// or controls a terminal.
pub(crate) fn one_line(what: &str, text: &str, utf16_max: usize) -> Result<String, HubError> {
    let text = text.trim();
    if is_blank(text) || utf16_len(text) > utf16_max || text.contains(ends_line) {
        return Err(HubError::Invalid(format!(
            "{what} has 1 to {utf16_max} characters and no line breaks or other control \
             characters."
        )));
    }
    Ok(text.to_owned())
}

impl HubError {
    /// Whether this is the one refusal of its kind.
    pub fn is(&self, refusal: Refusal) -> bool {
        *self == Self::Refused(refusal)
    }
}
