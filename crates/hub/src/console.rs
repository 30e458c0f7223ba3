//! The owner's console: who may sign in, and what he sees and does of all commands.
//!
//! Hashing a password takes tens of milliseconds by intent, so it is apart from the use cases: the
//! shell calls [`hash_password`] and [`StoredPassword::is`] where they hold nobody up.

use std::sync::PoisonError;

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, PasswordHasher as _, PasswordVerifier as _};
use callboard_ambient::Entropy;
use callboard_domain::limits::{
    PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN, RUNS_PER_PAGE, SETUP_LINK_MS, SIGN_IN_MS,
    SIGN_IN_TRIES_MAX, SIGN_IN_TRIES_MS, USER_AGENT_UTF16_MAX,
};
use callboard_domain::{CommandId, Refusal, SignInId, cut_utf16};
use callboard_store::{NewSignIn, OwnedRun, RunCount, RunFilter, RunRow, SignIn, Store, TokenHash};

use crate::{Created, Hub, HubError, Topic, token_hash};

/// What the console's door remembers until the hub stops.
#[derive(Debug, Default)]
pub(crate) struct Door {
    /// Hash of the one-time link, and until when it works, in monotonic milliseconds.
    setup: Option<(TokenHash, u64)>,
    /// When passwords were tried since the last right one, in monotonic milliseconds.
    tries_ms: Vec<u64>,
}

/// The owner's password as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPassword(String);

impl StoredPassword {
    /// Whether `password` is the one that was hashed. Takes tens of milliseconds.
    pub fn is(&self, password: &str) -> bool {
        let fits = password.chars().count() <= PASSWORD_CHARS_MAX;
        let verified = || Argon2::default().verify_password(password.as_bytes(), self.0.as_str());
        fits && verified().is_ok()
    }
}

/// The hash under which `password` is stored: Argon2id with 19 MiB and two passes, the first choice
/// of OWASP's password storage cheat sheet. Takes tens of milliseconds.
///
/// # Errors
/// [`HubError::Invalid`] for one that is too short or too long.
pub fn hash_password(password: &str, entropy: &Entropy) -> Result<String, HubError> {
    let length = password.chars().count();
    if !(PASSWORD_CHARS_MIN..=PASSWORD_CHARS_MAX).contains(&length) {
        return Err(HubError::Invalid(format!(
            "A password has {PASSWORD_CHARS_MIN} to {PASSWORD_CHARS_MAX} characters. A sentence \
             that you remember is a good one."
        )));
    }
    let mut salt = [0; 16];
    entropy.fill(&mut salt);
    let hashed = Argon2::default().hash_password_with_salt(password.as_bytes(), &salt);
    let hashed = hashed.map(|hash: PasswordHash| hash.to_string());
    hashed.map_err(|error| {
        tracing::error!(%error, "a password could not be hashed");
        HubError::Unavailable
    })
}

impl<S: Store> Hub<S> {
    /// A fresh secret that lets its holder set the console's password, once, within
    /// [`SETUP_LINK_MS`]. The one before it works no more.
    pub fn make_setup_link(&self) -> String {
        let secret = self.entropy.secret("cbs_");
        let until_ms = self.clock.monotonic_ms().saturating_add(SETUP_LINK_MS);
        self.door(|door| door.setup = Some((token_hash(&secret), until_ms)));
        secret
    }

    /// Whether `secret` is that of the present one-time link.
    pub fn is_setup_link(&self, secret: &str) -> bool {
        let is_it = self.setup_check(secret);
        self.door(|door| door.setup.is_some_and(|setup| is_it(&setup)))
    }

    /// Whether what the door remembers is the link with `secret`, and works now.
    fn setup_check(&self, secret: &str) -> impl Fn(&(TokenHash, u64)) -> bool {
        let (now_ms, hash) = (self.clock.monotonic_ms(), token_hash(secret));
        move |(known, until_ms)| *known == hash && now_ms < *until_ms
    }

    /// Sets the password through the one-time link, ends every other sign-in and signs this browser
    /// in; `None` when the link works no more. `hash` comes from [`hash_password`].
    ///
    /// # Errors
    /// [`HubError::Unavailable`], where the link still works.
    pub async fn set_up(
        &self,
        secret: &str,
        hash: String,
        user_agent: &str,
    ) -> Result<Option<Created<SignIn>>, HubError> {
        // Taken before anything is stored: of two that come at once, one is let in.
        let is_it = self.setup_check(secret);
        let Some(setup) = self.door(|door| door.setup.take_if(|setup| is_it(setup))) else {
            return Ok(None);
        };
        let stored = async {
            let owner_id = self.owner().await?;
            Ok(self.store.set_password_hash(owner_id, Some(hash)).await?)
        };
        if let Err(error) = stored.await {
            self.door(|door| door.setup = door.setup.or(Some(setup)));
            return Err(error);
        }
        self.door(|door| door.tries_ms.clear());
        tracing::info!("the console's password was set");
        self.add_sign_in(user_agent).await.map(Some)
    }

    /// Takes the password away, ends every sign-in, and gives the secret of a new one-time link.
    ///
    /// # Errors
    /// [`HubError::Unavailable`].
    pub async fn reset_password(&self) -> Result<String, HubError> {
        let owner_id = self.owner().await?;
        self.store.set_password_hash(owner_id, None).await?;
        tracing::info!("the console's password was taken away");
        Ok(self.make_setup_link())
    }

    /// The password that a browser must know to sign in; `None` until one is set.
    ///
    /// # Errors
    /// [`HubError::Invalid`] after too many wrong ones; [`HubError::Unavailable`].
    pub async fn password(&self) -> Result<Option<StoredPassword>, HubError> {
        let now_ms = self.clock.monotonic_ms();
        let tries = self.door(|door| {
            let is_recent = |ms: &u64| now_ms.saturating_sub(*ms) < SIGN_IN_TRIES_MS;
            door.tries_ms.retain(is_recent);
            door.tries_ms.len()
        });
        if tries >= SIGN_IN_TRIES_MAX {
            let minutes = SIGN_IN_TRIES_MS / 60_000;
            return Err(HubError::Invalid(format!(
                "Too many wrong passwords. Wait {minutes} minutes, or set a new one: `callboard hub \
                 password reset` on the hub's machine."
            )));
        }
        let stored = self.store.password_hash(self.owner().await?).await?;
        Ok(stored.map(StoredPassword))
    }

    /// Counts a try, before the password is looked at: of many that come together, only so many are
    /// looked at. A right one takes them all back.
    pub fn note_try(&self) {
        let now_ms = self.clock.monotonic_ms();
        self.door(|door| {
            if door.tries_ms.len() < SIGN_IN_TRIES_MAX {
                door.tries_ms.push(now_ms);
            }
        });
    }

    /// Signs a browser in that knew `password`. `None` when that was changed meanwhile.
    ///
    /// # Errors
    /// [`HubError::Unavailable`].
    pub async fn sign_in(
        &self,
        password: &StoredPassword,
        user_agent: &str,
    ) -> Result<Option<Created<SignIn>>, HubError> {
        let stored = self.store.password_hash(self.owner().await?).await?;
        if stored.as_ref() != Some(&password.0) {
            return Ok(None);
        }
        self.door(|door| door.tries_ms.clear());
        self.add_sign_in(user_agent).await.map(Some)
    }

    async fn add_sign_in(&self, user_agent: &str) -> Result<Created<SignIn>, HubError> {
        let (owner_id, now) = (self.owner().await?, self.clock.now());
        let token = self.entropy.secret("cbw_");
        let sign_in = SignIn {
            id: SignInId::from_bytes(self.entropy.uuid_v7(now)),
            owner_id,
            user_agent: cut_utf16(user_agent, USER_AGENT_UTF16_MAX).to_owned(),
            signed_in_at: now,
            expires_at: now.plus_ms(SIGN_IN_MS),
        };
        let new = NewSignIn {
            sign_in: sign_in.clone(),
            token_hash: token_hash(&token),
        };
        self.store.add_sign_in(new).await?;
        Ok(Created {
            made: sign_in,
            token,
        })
    }

    /// The sign-in of a browser's cookie; `None` for an unknown one, or one that is over.
    ///
    /// # Errors
    /// [`HubError::Unavailable`].
    pub async fn authenticate_browser(&self, token: &str) -> Result<Option<SignIn>, HubError> {
        let now = self.clock.now();
        Ok(self.store.sign_in_by_token(token_hash(token), now).await?)
    }

    /// The owner's sign-ins, oldest first.
    ///
    /// # Errors
    /// [`HubError::Unavailable`].
    pub async fn sign_ins(&self) -> Result<Vec<SignIn>, HubError> {
        let (owner_id, now) = (self.owner().await?, self.clock.now());
        Ok(self.store.sign_ins(owner_id, now).await?)
    }

    /// Ends a sign-in; one that is over already stays so.
    ///
    /// # Errors
    /// [`HubError::Unavailable`].
    pub async fn sign_out(&self, id: &str) -> Result<(), HubError> {
        let id = id.parse().unwrap_or(SignInId::UNKNOWN);
        self.store.end_sign_in(self.owner().await?, id).await?;
        Ok(())
    }

    /// A page of the owner's commands, last queued first, and whether more follow.
    ///
    /// # Errors
    /// [`HubError::Unavailable`].
    pub async fn owned_runs(&self, filter: RunFilter) -> Result<(Vec<OwnedRun>, bool), HubError> {
        let (owner_id, now) = (self.owner().await?, self.clock.now());
        let limit = RUNS_PER_PAGE + 1;
        let mut runs = self.store.owned_runs(owner_id, filter, limit, now).await?;
        let more = runs.len() > RUNS_PER_PAGE;
        runs.truncate(RUNS_PER_PAGE);
        Ok((runs, more))
    }

    /// One command of the owner, whole.
    ///
    /// # Errors
    /// [`Refusal::RunNotFound`], for a malformed id too.
    pub async fn owned_run(&self, command_id: &str) -> Result<OwnedRun, HubError> {
        let (owner_id, now) = (self.owner().await?, self.clock.now());
        let id = command_id.parse().unwrap_or(CommandId::UNKNOWN);
        let found = self.store.owned_run(owner_id, id, now).await?;
        Ok(found.ok_or(Refusal::RunNotFound)?)
    }

    /// How many commands the owner has of each status that occurs.
    ///
    /// # Errors
    /// [`HubError::Unavailable`].
    pub async fn run_counts(&self) -> Result<Vec<RunCount>, HubError> {
        Ok(self.store.run_counts(self.owner().await?).await?)
    }

    /// Asks a run to stop, whoever started it; idempotent. The row says how it stands.
    ///
    /// # Errors
    /// [`Refusal::RunNotFound`], for a malformed id too.
    pub async fn cancel_owned_run(&self, command_id: &str) -> Result<RunRow, HubError> {
        let (owner_id, now) = (self.owner().await?, self.clock.now());
        let id = command_id.parse().unwrap_or(CommandId::UNKNOWN);
        let row = self.store.cancel_owned_run(owner_id, id, now).await?;
        self.signals.moved(Topic::Run(row.command_id));
        self.signals
            .moved(Topic::Work(row.desktop_id, row.project_id));
        tracing::info!(command.id = %row.command_id, status = %row.run.status(), "owner cancels");
        Ok(row)
    }

    fn door<T>(&self, act: impl FnOnce(&mut Door) -> T) -> T {
        act(&mut self.door.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use callboard_ambient::{Clock, ManualClock};
    use callboard_domain::Timestamp;
    use callboard_store::MemoryStore;

    use super::*;

    const PASSWORD: &str = "correct horse battery";

    fn hub() -> (Hub<MemoryStore>, ManualClock) {
        let (clock, hands) = Clock::manual(Timestamp::from_millis(1_800_000_000_000));
        let entropy = Entropy::seeded(1, "console");
        (Hub::new(MemoryStore::default(), clock, entropy), hands)
    }

    fn hashed(hub: &Hub<MemoryStore>, password: &str) -> String {
        hash_password(password, &hub.entropy).unwrap()
    }

    #[test]
    fn a_password_is_recognised_and_no_other_is() {
        let entropy = Entropy::seeded(1, "password");
        let hash = hash_password(PASSWORD, &entropy).unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        let again = hash_password(PASSWORD, &entropy).unwrap();
        assert_ne!(hash, again, "each has a salt of its own");
        let stored = StoredPassword(hash);
        assert!(stored.is(PASSWORD));
        for other in ["", "correct horse batterz", &PASSWORD.repeat(20)] {
            assert!(!stored.is(other), "{other}");
        }
        for length in [PASSWORD_CHARS_MIN - 1, PASSWORD_CHARS_MAX + 1] {
            let refused = hash_password(&"x".repeat(length), &entropy);
            assert!(matches!(refused, Err(HubError::Invalid(_))), "{length}");
        }
    }

    #[tokio::test]
    async fn the_one_time_link_sets_the_password_once_and_not_after_a_day() {
        let (hub, hands) = hub();
        assert_eq!(hub.password().await.unwrap(), None);
        let old = hub.make_setup_link();
        let secret = hub.make_setup_link();
        let hash = hashed(&hub, PASSWORD);
        for wrong in [old.as_str(), "", "cbs_"] {
            assert!(!hub.is_setup_link(wrong), "{wrong}");
            let refused = hub.set_up(wrong, hash.clone(), "").await.unwrap();
            assert!(refused.is_none(), "{wrong}");
        }
        let created = hub.set_up(&secret, hash.clone(), "A browser").await;
        let created = created.unwrap().expect("the link works");
        let found = hub.authenticate_browser(&created.token).await.unwrap();
        assert_eq!(found, Some(created.made));
        assert!(
            hub.set_up(&secret, hash.clone(), "")
                .await
                .unwrap()
                .is_none()
        );
        let late = hub.make_setup_link();
        hands.advance_ms(SETUP_LINK_MS);
        assert!(hub.set_up(&late, hash, "").await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_reset_ends_every_sign_in_and_gives_a_new_link() {
        let (hub, _hands) = hub();
        let secret = hub.make_setup_link();
        let created = hub.set_up(&secret, hashed(&hub, PASSWORD), "").await;
        let token = created.unwrap().unwrap().token;
        let known = hub.password().await.unwrap().unwrap();
        let second = hub.sign_in(&known, "Another").await.unwrap().unwrap();
        assert_eq!(hub.sign_ins().await.unwrap().len(), 2);
        let secret = hub.reset_password().await.unwrap();
        for token in [token, second.token] {
            assert_eq!(hub.authenticate_browser(&token).await.unwrap(), None);
        }
        let late = hub.sign_in(&known, "").await.unwrap();
        assert!(late.is_none(), "the password it knew is gone");
        assert!(hub.is_setup_link(&secret));
    }

    #[tokio::test]
    async fn too_many_wrong_passwords_close_the_door_for_a_while() {
        let (hub, hands) = hub();
        for _ in 0..SIGN_IN_TRIES_MAX {
            assert!(hub.password().await.is_ok());
            hub.note_try();
        }
        assert!(matches!(hub.password().await, Err(HubError::Invalid(_))));
        hands.advance_ms(SIGN_IN_TRIES_MS);
        assert!(hub.password().await.is_ok());
    }

    #[tokio::test]
    async fn a_browser_that_is_signed_out_or_too_long_in_is_unknown() {
        let (hub, hands) = hub();
        let secret = hub.make_setup_link();
        let created = hub.set_up(&secret, hashed(&hub, PASSWORD), "").await;
        let first = created.unwrap().unwrap();
        let known = hub.password().await.unwrap().unwrap();
        let second = hub.sign_in(&known, &"x".repeat(9_999)).await;
        let second = second.unwrap().unwrap();
        assert_eq!(second.made.user_agent.len(), USER_AGENT_UTF16_MAX);
        hub.sign_out(&first.made.id.to_string()).await.unwrap();
        hub.sign_out("no id").await.unwrap();
        assert_eq!(hub.authenticate_browser(&first.token).await.unwrap(), None);
        assert_eq!(hub.sign_ins().await.unwrap(), [second.made]);
        hands.advance_ms(SIGN_IN_MS);
        assert_eq!(hub.authenticate_browser(&second.token).await.unwrap(), None);
    }
}
