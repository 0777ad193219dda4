//! Recorded requests of live calls: samples for kinds without personal data, and for `signature` the
//! sealed payloads of the newest offers, which no report shows.

use rampart_plugins::contract::PolicyKind;
use serde_json::Value;

use crate::Core;
use crate::platform::error::{Error, Result};
use crate::policies::evaluate::context::Attributes;
use crate::policies::kinds::{self, AnyRequest};
use crate::policies::lifecycle::error::LifecycleError;
use crate::policies::lifecycle::target::Target;
use crate::policies::runtime::SAMPLES_MAX;
use crate::trading::catalogue::Catalogue;

/// The recorded requests, newest first.
pub(super) async fn requests(
    core: &Core,
    target: Target<'_>,
    catalogue: &Catalogue,
) -> Result<Vec<AnyRequest>, LifecycleError> {
    let requests = match target.kind {
        PolicyKind::Signature => payloads(core, target).await?,
        kind => {
            let inputs = samples(core, target).await?.into_iter();
            let read = |input| {
                kinds::read(kind, kinds::ALONE, input, catalogue)
                    .map_err(|_| Error::invariant("read a stored sample"))
            };
            inputs.map(read).collect::<Result<_>>()?
        }
    };
    match requests.is_empty() {
        true => Err(LifecycleError::Conflict("nothing has been recorded yet")),
        false => Ok(requests),
    }
}

async fn samples(core: &Core, target: Target<'_>) -> Result<Vec<Value>> {
    let samples = sqlx::query_scalar!(
        "select input from policy_sample where client_id = $1 and kind = $2 \
         order by at desc, slot limit $3",
        target.client.uuid(),
        target.kind.as_str(),
        i64::from(SAMPLES_MAX),
    )
    .fetch_all(&core.db)
    .await?;
    Ok(samples)
}

/// The payloads that open: those of a master key that is gone leave the others to the dry run.
async fn payloads(core: &Core, target: Target<'_>) -> Result<Vec<AnyRequest>> {
    let sealed = sqlx::query_scalar!(
        r#"
        select signature_decision ->> 'input' as "input!" from offer
        where client_id = $1 and signature_decision is not null
            and signature_decision ->> 'input' is not null
        order by created_at desc limit $2
        "#,
        target.client.uuid(),
        i64::from(SAMPLES_MAX),
    )
    .fetch_all(&core.db)
    .await?;
    let found = sealed.len();
    let open = |sealed| {
        let stored = Value::String(sealed);
        kinds::read_stored(core, target.client, target.kind, &stored, Attributes::new()).ok()
    };
    let opened: Vec<_> = sealed.into_iter().filter_map(open).collect();
    let lost = found - opened.len();
    if lost > 0 {
        tracing::warn!(partner = target.slug, lost, "recorded payloads cannot be opened");
    }
    Ok(opened)
}
