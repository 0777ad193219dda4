//! The sandbox's model: magic values that give a test client's order another path, and the events
//! that it simulates. `money::connectors::sandbox` acts by it.

pub(crate) mod deposit_address;
mod scenario;
mod simulated_event;
mod simulated_sale_event;

pub use self::scenario::{Scenario, next};
pub use self::simulated_event::SimulatedEvent;
pub use self::simulated_sale_event::SimulatedSaleEvent;
