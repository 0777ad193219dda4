//! The callers, and the rights that the contract gives them.

use rampart_core::auth::caller::UserProof;
use rampart_core::endpoint::Route;
use rampart_core::platform::error::Code;

use super::resources::{Cast, Owner, Scope};

/// One of the two clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tenant {
    Acme,
    Rival,
}

/// A client's credential.
#[derive(Clone, Copy)]
enum By {
    Token(Tenant),
    Key(Tenant),
}

/// A caller's credentials: its name, those of clients, a user's token, a user's identifier.
type Brought = (&'static str, &'static [By], Option<Owner>, Option<Owner>);

/// Every caller.
const CALLERS: [Brought; 16] = {
    use self::By::{Key, Token};
    use self::Owner::{Ann, Bob, Eve};
    use self::Tenant::{Acme, Rival};
    [
        ("acme", &[Token(Acme)], None, None),
        ("rival", &[Token(Rival)], None, None),
        ("acme's key", &[Key(Acme)], None, None),
        ("acme's key for Ann", &[Key(Acme)], None, Some(Ann)),
        ("acme's key for Bob", &[Key(Acme)], None, Some(Bob)),
        ("rival's key for Eve", &[Key(Rival)], None, Some(Eve)),
        ("acme with Ann's token", &[Token(Acme)], Some(Ann), None),
        ("acme with Bob's token", &[Token(Acme)], Some(Bob), None),
        ("acme with both of Ann's", &[Token(Acme)], Some(Ann), Some(Ann)),
        ("acme's key with Ann's token for Bob", &[Key(Acme)], Some(Ann), Some(Bob)),
        ("acme's key for Eve", &[Key(Acme)], None, Some(Eve)),
        ("acme with Eve's token", &[Token(Acme)], Some(Eve), None),
        ("rival's key with Ann's token", &[Key(Rival)], Some(Ann), None),
        ("rival for Ann", &[Token(Rival)], None, Some(Ann)),
        ("nobody", &[], None, None),
        ("both clients", &[Key(Acme), Token(Rival)], None, None),
    ]
};

/// A set of credentials.
pub(super) struct Caller {
    name: &'static str,
    pub(super) headers: Vec<(&'static str, String)>,
    client: &'static [By],
    pub(super) token: Option<Owner>,
    identifier: Option<Owner>,
}

impl std::fmt::Debug for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The rights of a caller at a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Refused(&'static str),
    /// A proven client, and its user where there is one; without one it stands for all of them.
    For {
        tenant: Tenant,
        user: Option<Owner>,
    },
}

impl Standing {
    /// True if the caller sees the owner's resources of this scope.
    pub(super) fn sees(&self, owner: Owner, scope: Scope) -> bool {
        match self {
            Self::Refused(_) => false,
            Self::For { tenant, user } => {
                let by_scope = match scope {
                    Scope::Client => true,
                    Scope::User => user.is_none_or(|user| user == owner),
                    Scope::Oneself => *user == Some(owner),
                };
                owner.tenant() == Some(*tenant) && by_scope
            }
        }
    }
}

impl Caller {
    /// The rights that the contract gives this caller at this route.
    pub(super) fn standing(&self, route: &Route) -> Standing {
        let (tenant, by_key) = match self.client {
            [] => return Standing::Refused("ER802"),
            [By::Token(tenant)] => (*tenant, false),
            [By::Key(tenant)] => (*tenant, true),
            _ => return Standing::Refused("ER803"),
        };
        let user = match route.user {
            UserProof::None => return Standing::For { tenant, user: None },
            UserProof::Token => self.token,
            _ => self.token.or(self.identifier),
        };
        let wanted = match route.user {
            UserProof::Required | UserProof::Token => true,
            UserProof::WithApiKey => by_key,
            UserProof::None | UserProof::Optional => false,
        };
        let Some(user) = user else {
            return match wanted {
                true => Standing::Refused("ER700"),
                false => Standing::For { tenant, user: None },
            };
        };
        // Another client's user is as unknown as none.
        if user.tenant() != Some(tenant) {
            return Standing::Refused(if self.token.is_some() { "ER702" } else { "ER705" });
        }
        let other = self.identifier.is_some_and(|identifier| identifier != user);
        if other && route.declares(Code::UserIdentifierMismatch) {
            return Standing::Refused("ER703");
        }
        Standing::For { tenant, user: Some(user) }
    }
}

impl Cast {
    /// Every caller, with new tokens.
    pub(super) async fn callers(&self) -> Vec<Caller> {
        let mut sessions = Vec::new();
        for user in [&self.ann, &self.bob, &self.eve] {
            let session = user.log_in().await;
            sessions.push(format!("Bearer {}", session["token"].as_str().unwrap()));
        }
        let tokens = [self.acme.token().await, self.rival.token().await];
        let credential = |by: &By| match by {
            By::Token(tenant) => ("authorization", format!("Bearer {}", tokens[*tenant as usize])),
            By::Key(Tenant::Acme) => ("x-api-key", self.acme.api_key.clone()),
            By::Key(Tenant::Rival) => ("x-api-key", self.rival.api_key.clone()),
        };
        let session = |user: Owner| ("user-authorization", sessions[user as usize].clone());
        let name = |user: Owner| ("user-identifier", self.user(user).identifier.clone());
        let caller = |(name_of, client, token, identifier): Brought| Caller {
            name: name_of,
            headers: client
                .iter()
                .map(credential)
                .chain(token.map(session))
                .chain(identifier.map(name))
                .collect(),
            client,
            token,
            identifier,
        };
        CALLERS.into_iter().map(caller).collect()
    }
}
