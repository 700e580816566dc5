//! Named quantities: sums, differences and maxima by name.

use std::collections::BTreeMap;

use crate::{Istr, Quantity};

/// Quantities by the name of their resource.
pub type Amounts = BTreeMap<Istr, Quantity>;

/// Adds amounts to others.
pub fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, quantity) in more {
        match sum.get_mut(name) {
            Some(held) => *held += *quantity,
            None => drop(sum.insert(name.clone(), *quantity)),
        }
    }
}

/// Raises amounts to others, where those are greater.
pub fn raise(most: &mut Amounts, others: &Amounts) {
    for (name, quantity) in others {
        match most.get_mut(name) {
            Some(held) if *held >= *quantity => {}
            Some(held) => *held = *quantity,
            None => drop(most.insert(name.clone(), *quantity)),
        }
    }
}

/// Returns what is left of amounts without others, and zero where those are greater.
#[must_use]
pub fn without(amounts: &Amounts, others: &Amounts) -> Amounts {
    let left = |(name, quantity): (&Istr, &Quantity)| {
        let rest = others.get(name).map_or(*quantity, |other| *quantity - *other);
        (name.clone(), if rest > Quantity::ZERO { rest } else { Quantity::ZERO })
    };
    amounts.iter().map(left).collect()
}

/// Whether some amount is lower than before: other objects can use what is free now.
#[must_use]
pub fn frees(before: &Amounts, now: &Amounts) -> bool {
    before.iter().any(|(name, quantity)| *quantity > now.get(name).copied().unwrap_or_default())
}

/// Returns amounts in the form of upstream's messages: `limits.cpu=2,pods=3`.
#[must_use]
pub fn shown(amounts: &Amounts) -> String {
    let parts: Vec<String> = amounts.iter().map(|(name, quantity)| format!("{name}={quantity}")).collect();
    parts.join(",")
}
