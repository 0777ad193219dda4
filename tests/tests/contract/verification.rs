//! What a user still has to prove: questions, accounts, levels.

mod amld5;
