//! Names that are chosen as the server would for `generateName`.

use steersman_base::Istr;

use super::Written;

/// The choice of an object's name.
#[derive(Clone, Copy)]
pub struct Naming<'a> {
    /// The prefix.
    pub prefix: &'a str,
    /// The purpose of the object, such as the node of a daemon pod; empty if the objects of the owner are interchangeable.
    /// The name of a create that may still arrive is used only for the same purpose.
    pub purpose: &'a str,
    /// Whether an object of this name was seen in this pass, and so is counted already.
    pub is_seen: &'a (dyn Fn(&str) -> bool + Sync),
}

/// The outcome of a create under a chosen name: the object exists.
#[derive(Clone, Debug, PartialEq)]
pub struct Created {
    /// The metadata of the object.
    pub meta: Written,
    /// Whether an earlier create, whose outcome was unknown, made the object: it is as that create asked for, which may differ
    /// from what this one asks for.
    pub is_earlier: bool,
}

/// The letters that upstream's servers append: no vowels, so that no words result, and no similar-looking ones.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const LETTERS_ADDED: usize = 5;
/// The rest of a label's 63 letters.
const PREFIX_LENGTH_MAX: usize = 63 - LETTERS_ADDED;

// === impl Naming ===

impl Naming<'_> {
    /// Returns a random name.
    pub(super) fn choose(&self) -> Istr {
        let letters = (0..LETTERS_ADDED).map(|_| char::from(LETTERS[fastrand::usize(..LETTERS.len())]));
        let name: String = self.beginning().chars().chain(letters).collect();
        Istr::from(name)
    }

    /// Whether a name could have been chosen.
    pub(super) fn fits(&self, name: &str) -> bool {
        let rest = name.strip_prefix(self.beginning()).unwrap_or_default();
        rest.len() == LETTERS_ADDED && rest.bytes().all(|letter| LETTERS.contains(&letter))
    }

    /// Returns a placeholder for a name that is not chosen, because nothing is sent.
    pub(super) fn not_chosen(&self) -> Istr {
        Istr::from(format!("{}{}", self.beginning(), super::answer::NAME_TO_COME))
    }

    fn beginning(&self) -> &str {
        let end = self.prefix.char_indices().map(|(at, letter)| at + letter.len_utf8());
        &self.prefix[..end.take_while(|end| *end <= PREFIX_LENGTH_MAX).last().unwrap_or(0)]
    }
}

impl std::fmt::Debug for Naming<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Naming").field("prefix", &self.prefix).field("purpose", &self.purpose).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_prefix_and_five_letters_and_no_longer_than_a_label() {
        let long = "x".repeat(70);
        for (prefix, begins) in [("web-", "web-"), (long.as_str(), &long[..58]), ("", "")] {
            let naming = Naming { prefix, purpose: "", is_seen: &|_| false };
            let name = naming.choose();
            assert!(name.starts_with(begins) && name.len() == begins.len() + 5, "{prefix}: {name}");
            assert!(naming.fits(&name), "{name}");
        }
        let naming = Naming { prefix: "web-", purpose: "", is_seen: &|_| false };
        for other in ["web-", "web-bcdfga", "api-bcdfg", "web-bcdfa", "web"] {
            assert!(!naming.fits(other), "{other}");
        }
    }
}
