//! Routes whose connector lacks the capability to move anything by them. Commands for them wait for
//! ever, as no other connector takes them.

use crate::Core;
use crate::money::connectors::commands::{CommandKind, Direction};
use crate::platform::error::Result;

/// Connectors with routes that they lack the capability for, a sentence for each kind of route.
///
/// # Errors
/// When the database cannot be read.
pub async fn idle_routes(core: &Core) -> Result<Vec<String>> {
    let rows = sqlx::query!(
        r#"
        select distinct r.connector as "connector!", r.direction as "direction!",
            r.payment_method is not null as "is_money!", c.capabilities as "capabilities!"
        from route r join connector c on c.name = r.connector
        order by 1, 2, 3
        "#,
    )
    .fetch_all(&core.db)
    .await?;
    let idle = rows.into_iter().filter_map(|row| {
        let capabilities: Vec<_> = row.capabilities.iter().map(String::as_str).collect();
        let direction = Direction::from_name(&row.direction)?;
        lack(&row.connector, &capabilities, direction, row.is_money)
    });
    Ok(idle.collect())
}

/// The sentence about a connector that lacks the capability for routes of money, or else of coins,
/// in this direction; `None` if it has it.
pub(super) fn lack(
    connector: &str,
    capabilities: &[&str],
    direction: Direction,
    is_money: bool,
) -> Option<String> {
    let needed = CommandKind::of_route(direction, is_money).as_str();
    if capabilities.contains(&needed) {
        return None;
    }
    let (moved, direction) = (if is_money { "money" } else { "coins" }, direction.as_str());
    Some(format!("{connector} lacks {needed}: its routes of {moved} {direction} move nothing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_route_needs_a_capability_of_its_own() {
        for (direction, is_money, needed) in [
            (Direction::In, true, "payment.create"),
            (Direction::In, false, "deposit.address"),
            (Direction::Out, true, "transfer.send"),
            (Direction::Out, false, "payout.send"),
        ] {
            assert_eq!(lack("one", &["card.verify", needed], direction, is_money), None);
            let kinds = CommandKind::ALL.into_iter().map(CommandKind::as_str);
            let others: Vec<_> = kinds.filter(|kind| *kind != needed).collect();
            let sentence = lack("one", &others, direction, is_money).unwrap();
            assert!(sentence.starts_with(&format!("one lacks {needed}: ")), "{sentence}");
        }
    }
}
