#![allow(missing_docs, reason = "x")]
#[derive(Debug)]
pub enum Chain {
    A,
}
impl std::str::FromStr for Chain {
    type Err = super::InvalidCaip19;
    fn from_str(_: &str) -> Result<Self, Self::Err> {
        Ok(Self::A)
    }
}
