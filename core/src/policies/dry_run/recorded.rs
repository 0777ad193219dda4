//! Questions that live requests asked: samples of the kinds that name nobody, and for `signature`
//! the sealed payloads of the newest offers, which no answer shows.

use rampart_plugins::contract::PolicyKind;
use serde_json::Value;

use crate::Core;
use crate::platform::error::{Error, Result};
use crate::policies::ask::open_payload;
use crate::policies::dry_run::question::Question;
use crate::policies::lifecycle::{NotDone, Target};
use crate::policies::runtime::SAMPLES_MAX;
use crate::trading::catalogue::Catalogue;

/// The newest first.
pub(super) async fn questions(
    core: &Core,
    target: Target<'_>,
    catalogue: &Catalogue,
) -> Result<Vec<Question>, NotDone> {
    let questions = match target.kind {
        PolicyKind::Signature => payloads(core, target).await?,
        kind => {
            let inputs = samples(core, target).await?.into_iter();
            let read = |input| {
                Question::read(kind, input, catalogue)
                    .map_err(|_| Error::broken("read a sample that was written"))
            };
            inputs.map(read).collect::<Result<_>>()?
        }
    };
    match questions.is_empty() {
        true => Err(NotDone::Conflict("nothing has been recorded yet")),
        false => Ok(questions),
    }
}

async fn samples(core: &Core, target: Target<'_>) -> Result<Vec<Value>> {
    let samples = sqlx::query_scalar!(
        "select input from policy_sample where client_id = $1 and kind = $2 \
         order by at desc, slot limit $3",
        target.client.uuid(),
        target.kind.as_str(),
        SAMPLES_MAX.cast_signed(),
    )
    .fetch_all(&core.db)
    .await?;
    Ok(samples)
}

async fn payloads(core: &Core, target: Target<'_>) -> Result<Vec<Question>> {
    let sealed = sqlx::query_scalar!(
        r#"
        select signature_decision ->> 'input' as "input!" from offer
        where client_id = $1 and signature_decision is not null
            and signature_decision ->> 'input' is not null
        order by created_at desc limit $2
        "#,
        target.client.uuid(),
        SAMPLES_MAX.cast_signed(),
    )
    .fetch_all(&core.db)
    .await?;
    let open = |sealed: &String| open_payload(core, target.client, sealed);
    sealed.iter().map(|sealed| Ok(Question::Signature(open(sealed)?))).collect()
}
