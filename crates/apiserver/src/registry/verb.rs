//! Verbs of the API.

/// A verb of the API, as a bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Verb {
    /// `create`
    Create = 1,
    /// `delete`
    Delete = 2,
    /// `deletecollection`
    DeleteCollection = 4,
    /// `get`
    Get = 8,
    /// `list`
    List = 16,
    /// `patch`
    Patch = 32,
    /// `update`
    Update = 64,
    /// `watch`
    Watch = 128,
}

/// A set of verbs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verbs(u8);

// === impl Verb ===

impl Verb {
    /// All verbs, in the order discovery lists them, with the letter of the table and the name.
    pub(crate) const ALL: [(Self, char, &'static str); 8] = [
        (Self::Create, 'c', "create"),
        (Self::Delete, 'd', "delete"),
        (Self::DeleteCollection, 'x', "deletecollection"),
        (Self::Get, 'g', "get"),
        (Self::List, 'l', "list"),
        (Self::Patch, 'p', "patch"),
        (Self::Update, 'u', "update"),
        (Self::Watch, 'w', "watch"),
    ];

    /// Returns the name.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(held, ..)| *held == self).map_or("", |(.., name)| name)
    }
}

// === impl Verbs ===

impl Verbs {
    /// All verbs.
    pub(crate) const EVERY: Self = Self(u8::MAX);

    /// Returns the set of these verbs.
    #[must_use]
    pub(crate) fn of(verbs: &[Verb]) -> Self {
        Self(verbs.iter().fold(0, |set, verb| set | *verb as u8))
    }

    /// Returns the set that the table writes with these letters.
    pub(super) fn from_letters(letters: &str) -> Self {
        let of_letter =
            |letter| Verb::ALL.iter().find(|(_, held, _)| *held == letter).map_or(0, |(verb, ..)| *verb as u8);
        Self(letters.chars().fold(0, |set, letter| set | of_letter(letter)))
    }

    /// Whether the set has this verb.
    #[must_use]
    pub(crate) fn has(self, verb: Verb) -> bool {
        self.0 & verb as u8 != 0
    }

    /// Returns the names of the verbs.
    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        Verb::ALL.into_iter().filter(move |(verb, ..)| self.has(*verb)).map(|(.., name)| name)
    }
}
