//! What the owner sees of all commands, and the console's password and sign-ins.

use std::collections::BTreeMap;

use callboard_domain::graph_run::Status;
use callboard_domain::{CommandId, OwnerId, SignInId, Timestamp};

use super::{Caller, Tables};
use crate::rules::{listed, settled_at};
use crate::{NewSignIn, OwnedRun, RunCount, RunFilter, RunRow, SignIn, TokenHash};

/// Passwords and sign-ins.
#[derive(Debug, Default)]
pub(in super::super) struct Console {
    passwords: BTreeMap<OwnerId, String>,
    sign_ins: Vec<NewSignIn>,
}

impl Console {
    pub(in super::super) fn password_hash(&self, owner_id: OwnerId) -> Option<String> {
        self.passwords.get(&owner_id).cloned()
    }

    pub(in super::super) fn set_password_hash(&mut self, owner_id: OwnerId, hash: Option<String>) {
        match hash {
            Some(hash) => drop(self.passwords.insert(owner_id, hash)),
            None => drop(self.passwords.remove(&owner_id)),
        }
        self.sign_ins.retain(|row| row.sign_in.owner_id != owner_id);
    }

    pub(in super::super) fn add_sign_in(&mut self, new: NewSignIn) {
        let SignIn {
            owner_id,
            signed_in_at,
            ..
        } = new.sign_in;
        self.sign_ins.retain(|row| {
            row.sign_in.owner_id != owner_id || row.sign_in.expires_at > signed_in_at
        });
        self.sign_ins.push(new);
    }

    pub(in super::super) fn sign_in_by_token(
        &self,
        token_hash: TokenHash,
        now: Timestamp,
    ) -> Option<SignIn> {
        let mut rows = self.sign_ins.iter();
        let found = rows.find(|row| row.token_hash == token_hash && row.sign_in.expires_at > now);
        found.map(|row| row.sign_in.clone())
    }

    pub(in super::super) fn sign_ins(&self, owner_id: OwnerId, now: Timestamp) -> Vec<SignIn> {
        let rows = self.sign_ins.iter().map(|row| &row.sign_in);
        rows.filter(|row| row.owner_id == owner_id && row.expires_at > now)
            .cloned()
            .collect()
    }

    pub(in super::super) fn end_sign_in(&mut self, owner_id: OwnerId, id: SignInId) -> bool {
        let before = self.sign_ins.len();
        self.sign_ins
            .retain(|row| row.sign_in.owner_id != owner_id || row.sign_in.id != id);
        self.sign_ins.len() < before
    }
}

impl Tables {
    pub(in super::super) fn owned_runs(
        &self,
        owner_id: OwnerId,
        filter: RunFilter,
        limit: usize,
        now: Timestamp,
    ) -> Vec<OwnedRun> {
        let owned = |id: &CommandId| {
            let row = self.runs.get(id)?;
            self.is_of(row, Caller::Owner(owner_id)).then_some(row)
        };
        let rows: Vec<&RunRow> = self.queue.iter().filter_map(owned).collect();
        let end = match filter.before {
            None => rows.len(),
            Some(id) => {
                let mut ids = rows.iter().map(|row| row.command_id);
                ids.position(|other| other == id).unwrap_or(0)
            }
        };
        let has_status = |row: &&&RunRow| {
            let status = filter.status;
            status.is_none_or(|status| row.run.status() == status)
        };
        let rows = rows.iter().take(end).rev().filter(has_status).take(limit);
        rows.map(|row| self.owned(&listed((*row).clone()), now))
            .collect()
    }

    pub(in super::super) fn owned_run(
        &self,
        owner_id: OwnerId,
        command_id: CommandId,
        now: Timestamp,
    ) -> Option<OwnedRun> {
        let row = self.runs.get(&command_id)?;
        let is_owned = self.is_of(row, Caller::Owner(owner_id));
        is_owned.then(|| self.owned(row, now))
    }

    pub(in super::super) fn run_counts(&self, owner_id: OwnerId) -> Vec<RunCount> {
        let owned = self
            .runs
            .values()
            .filter(|row| self.is_of(row, Caller::Owner(owner_id)));
        let mut counts: BTreeMap<Status, u64> = BTreeMap::new();
        for row in owned {
            *counts.entry(row.run.status()).or_default() += 1;
        }
        let count = |(status, count)| RunCount { status, count };
        counts.into_iter().map(count).collect()
    }

    fn owned(&self, row: &RunRow, now: Timestamp) -> OwnedRun {
        let key = (row.project_id, row.desktop_id);
        let mut shared = self.sessions.get(&key).into_iter().flatten();
        let session = shared.find(|session| session.graph_session_id == row.graph_session_id);
        let desktop = self.desktop(row.desktop_id);
        OwnedRun {
            project_name: self.project_name(row.project_id),
            connection_name: self.connection_name(row.connection_id),
            desktop_name: desktop.map_or_else(String::new, |desktop| desktop.name.clone()),
            session_name: session.map(|session| session.name.clone()),
            row: self.shown(row, settled_at(&row.run, now)),
        }
    }
}
