//! Decimals in compact binary encodings: digits and scale, exactly. The functions [`serialize`] and
//! [`deserialize`] serve `#[serde(with = "packed")]`, those of [`optional`] a decimal that may be
//! missing.

use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A decimal as its digits and its scale.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed(pub(crate) Decimal);

impl Serialize for Packed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.0.mantissa(), self.0.scale()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Packed {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let (mantissa, scale) = <(i128, u32)>::deserialize(source)?;
        Decimal::try_from_i128_with_scale(mantissa, scale)
            .map(Self)
            .map_err(serde::de::Error::custom)
    }
}

/// Writes a decimal.
pub(crate) fn serialize<S: Serializer>(value: &Decimal, serializer: S) -> Result<S::Ok, S::Error> {
    Packed(*value).serialize(serializer)
}

/// Reads a decimal.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(source: D) -> Result<Decimal, D::Error> {
    Packed::deserialize(source).map(|Packed(value)| value)
}

/// The same for a decimal that may be missing.
pub(crate) mod optional {
    use super::{Decimal, Deserialize, Deserializer, Packed, Serialize, Serializer};

    /// Writes a decimal, if there is one.
    pub(crate) fn serialize<S: Serializer>(
        value: &Option<Decimal>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.map(Packed).serialize(serializer)
    }

    /// Reads a decimal, if there is one.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        source: D,
    ) -> Result<Option<Decimal>, D::Error> {
        let packed = Option::<Packed>::deserialize(source)?;
        Ok(packed.map(|Packed(value)| value))
    }
}
