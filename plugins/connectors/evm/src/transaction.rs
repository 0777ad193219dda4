//! Transactions of payouts: EIP-1559, of native coins or of a token.

use alloy::consensus::transaction::SignerRecoverable as _;
use alloy::consensus::{SignableTransaction as _, TxEip1559, TxEnvelope};
use alloy::eips::eip2718::{Decodable2718 as _, Encodable2718 as _};
use alloy::primitives::{Address, B256, Bytes, Signature, TxKind, U256, keccak256};

use crate::fees::Fees;

/// The place of a transaction among those of its sender: one transaction takes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// Id of the chain.
    pub(crate) chain_id: u64,
    /// The sender's count of transactions before it.
    pub(crate) nonce: u64,
}

/// Coins and their recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    /// The token's contract; `None` for the chain's own coin.
    pub(crate) token: Option<Address>,
    /// The recipient.
    pub(crate) to: Address,
    /// Smallest units.
    pub(crate) units: U256,
}

impl Transfer {
    /// The account or contract that is called.
    pub(crate) fn called(&self) -> Address {
        self.token.unwrap_or(self.to)
    }

    /// Wei that go with the call.
    pub(crate) fn value(&self) -> U256 {
        if self.token.is_some() { U256::ZERO } else { self.units }
    }

    /// The call's input: `transfer(address,uint256)` of a token.
    pub(crate) fn input(&self) -> Bytes {
        if self.token.is_none() {
            return Bytes::new();
        }
        let (to, units) = (self.to.into_word(), self.units.to_be_bytes::<32>());
        Bytes::from([&[0xa9, 0x05, 0x9c, 0xbb][..], &to[..], &units[..]].concat())
    }

    /// The transaction that carries it out.
    pub(crate) fn transaction(&self, slot: Slot, gas_limit: u64, fees: Fees) -> TxEip1559 {
        TxEip1559 {
            chain_id: slot.chain_id,
            nonce: slot.nonce,
            gas_limit,
            max_fee_per_gas: fees.max,
            max_priority_fee_per_gas: fees.priority,
            to: TxKind::Call(self.called()),
            value: self.value(),
            access_list: Default::default(),
            input: self.input(),
        }
    }
}

/// The bytes of a signed transaction.
pub(crate) fn encode(transaction: TxEip1559, signature: Signature) -> Bytes {
    TxEnvelope::Eip1559(transaction.into_signed(signature)).encoded_2718().into()
}

/// The transaction in signed bytes, and who signed it; `None` if they are none.
pub(crate) fn decode(raw: &Bytes) -> Option<(TxEip1559, Address)> {
    let envelope = TxEnvelope::decode_2718(&mut &raw[..]).ok()?;
    let signer = envelope.recover_signer().ok()?;
    Some((envelope.as_eip1559()?.tx().clone(), signer))
}

/// The hash by which the network knows signed bytes.
pub(crate) fn hash(raw: &Bytes) -> B256 {
    keccak256(raw)
}

/// The fees of a transaction.
pub(crate) fn fees(transaction: &TxEip1559) -> Fees {
    Fees { max: transaction.max_fee_per_gas, priority: transaction.max_priority_fee_per_gas }
}

/// Most wei that the network has for a transaction.
pub(crate) fn network_fee(transaction: &TxEip1559) -> U256 {
    let gas = U256::from(transaction.gas_limit);
    U256::from(transaction.max_fee_per_gas).saturating_mul(gas)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_sent_by_its_contract() {
        let (token, to) = (Address::repeat_byte(7), Address::repeat_byte(9));
        let transfer = Transfer { token: Some(token), to, units: U256::from(258) };
        assert_eq!((transfer.called(), transfer.value()), (token, U256::ZERO));
        let input = transfer.input();
        assert_eq!(input.len(), 68);
        assert_eq!(&input[..4], &keccak256("transfer(address,uint256)")[..4]);
        assert_eq!((&input[16..36], &input[66..]), (&to[..], &[1, 2][..]));
        let native = Transfer { token: None, to, units: U256::from(258) };
        assert_eq!((native.called(), native.value()), (to, U256::from(258)));
        assert!(native.input().is_empty());
    }
}
