//! What the server knows about its resources, and what it does to their objects.
//!
//! 1. Every resource is a [`Row`]: names, scope, verbs and subresources come from `data/resources.tsv`, what is special
//!    about its life from [`traits`]. There is no code per resource here; what is, is in [`kinds`](crate::kinds).
//! 2. Every write takes the same way, whichever subresource it comes by: decode, patch, check against the schema, default
//!    ([`checked`]), then prepare, validate and encode ([`Registry::finish`]), and commit.
//! 3. A refused write has written nothing; a dry run writes nothing and answers as if it had.

pub(crate) mod checked;
pub mod convert;
pub mod crd;
pub mod custom;
pub(crate) mod delete;
mod eviction;
mod fit;
pub(crate) mod life;
pub(crate) mod list;
pub mod query;
mod review;
mod scale;
pub(crate) mod subresource;
#[cfg(test)]
mod tests;
mod token;
pub mod traits;
pub(crate) mod write;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use steersman_base::{Clock, Istr, ObjectKey, Resource, Scope};

use crate::auth::{Auth, User};
use crate::kinds::service::Allocator;
use crate::logs::{LogText, Logs};
use crate::schema::FieldValidation;
use crate::server::Authorization;
use crate::status::{GroupResource, Status};
use crate::store::{Object, Shelf, Storage};
use custom::Custom;
use traits::Traits;

/// A verb of the API, as a bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Verb {
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
pub struct Verbs(u8);

/// One resource in one version.
#[derive(Debug)]
pub struct Row {
    /// Group, version, plural, kind and scope.
    pub resource: Resource,
    /// Kind of its lists.
    pub list_kind: Cow<'static, str>,
    /// Singular name.
    pub singular: Cow<'static, str>,
    /// Short names, for command lines.
    pub short_names: Vec<Cow<'static, str>>,
    /// Categories, such as `all`.
    pub categories: Vec<Cow<'static, str>>,
    /// What can be done.
    pub verbs: Verbs,
    /// Parts with a path of their own.
    pub subresources: Vec<Subresource>,
    /// How discovery names the version that is stored; empty if nothing is.
    pub storage_hash: Cow<'static, str>,
    /// Where its objects are kept.
    pub shelf: Shelf,
    /// What is special about the life of its objects.
    pub traits: &'static Traits,
    /// What a CustomResourceDefinition says about it.
    pub custom: Option<Custom>,
}

/// A part of an object with a path of its own.
#[derive(Clone, Debug)]
pub struct Subresource {
    /// Its name: `status`.
    pub name: Cow<'static, str>,
    /// Kind of its body.
    pub kind: Cow<'static, str>,
    /// Group and version of its body, if they are not the resource's.
    pub answer: Option<(Cow<'static, str>, Cow<'static, str>)>,
    /// What can be done.
    pub verbs: Verbs,
}

/// The resources, the objects and the rules they live by.
pub struct Registry {
    pub(crate) store: Arc<dyn Storage>,
    pub(crate) clock: Clock,
    pub(crate) auth: Arc<Auth>,
    pub(crate) custom: RwLock<BTreeMap<(String, String, String), Arc<Row>>>,
    /// How definitions are served: whoever watches their objects hears when that ends.
    pub(crate) served: Mutex<BTreeMap<Istr, crd::Served>>,
    /// Definitions whose objects are being deleted, each by one task.
    pub(crate) cleaning: Mutex<BTreeSet<String>>,
    /// Which cluster IPs and node ports are taken.
    pub(crate) services: Allocator,
    /// Who has the logs of containers.
    pub(crate) logs: Option<Arc<dyn Logs>>,
    /// Who may do what.
    pub(crate) authorization: Authorization,
    /// Whether claims and volumes come without the finalizers that protect them.
    pub(crate) unprotected_storage: bool,
    /// Whether stored definitions wait for a runtime, which there was none of when the server was made.
    is_waiting: AtomicBool,
    /// The registry itself, for what it does after a request has been answered.
    pub(crate) me: Weak<Self>,
}

/// Who asks for what, and how.
#[derive(Debug)]
pub struct Call {
    /// The resource.
    pub row: Arc<Row>,
    /// The namespace; empty for all, or for a cluster-wide resource.
    pub namespace: String,
    /// The object; empty for the collection.
    pub name: String,
    /// The part of the object; empty for the whole.
    pub subresource: String,
    /// Who asks.
    pub user: User,
    /// The options that came in the query.
    pub query: query::Query,
    /// Whether nothing is to be written.
    pub dry_run: bool,
    /// What happens to unknown fields.
    pub field_validation: FieldValidation,
}

/// What a call answers.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status.
    pub code: u16,
    /// The body.
    pub body: Content,
    /// Warnings, one header each.
    pub warnings: Vec<String>,
}

/// The body of an answer.
#[derive(Debug)]
pub enum Content {
    /// An object as it is stored.
    Stored(Arc<Object>),
    /// An object that is not stored so.
    Value(Value),
    /// A list.
    List(ListAnswer),
    /// Success or failure, and nothing else.
    Status(Status),
    /// A log, as it comes.
    Log(LogText),
    /// Nothing at all.
    Nothing,
}

/// A list, not yet encoded.
#[derive(Debug)]
pub struct ListAnswer {
    /// The objects.
    pub objects: Vec<Arc<Object>>,
    /// The revision they are from.
    pub revision: u64,
    /// Where the next page starts.
    pub continue_token: String,
    /// How many are left, where that is known.
    pub remaining: Option<usize>,
}

static BUILT_IN: LazyLock<Vec<Arc<Row>>> = LazyLock::new(|| read_rows(include_str!("../data/resources.tsv")));
static INDEX: LazyLock<BTreeMap<(&'static str, &'static str, &'static str), usize>> = LazyLock::new(|| {
    let key = |row: &'static Arc<Row>| (&*row.resource.group, &*row.resource.version, &*row.resource.plural);
    BUILT_IN.iter().enumerate().map(|(at, row)| (key(row), at)).collect()
});

/// The resources that are always served, in the order of discovery.
#[must_use]
pub fn built_in() -> &'static [Arc<Row>] {
    &BUILT_IN
}

/// Reads the table of resources; subresources follow their resource.
fn read_rows(table: &'static str) -> Vec<Arc<Row>> {
    let mut rows: Vec<Row> = Vec::with_capacity(128);
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let mut columns = line.split('\t');
        let mut next = || columns.next().unwrap_or_default();
        let (group, version, name, singular, kind) = (next(), next(), next(), next(), next());
        let scope = if next() == "n" { Scope::Namespaced } else { Scope::Cluster };
        let verbs = Verbs::from_letters(next());
        let (short_names, categories, answer, storage_hash) = (next(), next(), next(), next());
        if let Some((_, part)) = name.split_once('/') {
            let answer = answer.split_once('/').map(|(group, version)| (Cow::Borrowed(group), Cow::Borrowed(version)));
            let subresource = Subresource { name: part.into(), kind: kind.into(), answer, verbs };
            if let Some(row) = rows.last_mut() {
                row.subresources.push(subresource);
            }
            continue;
        }
        let words = |text: &'static str| text.split(',').filter(|word| !word.is_empty()).map(Cow::Borrowed).collect();
        let resource = match scope {
            Scope::Namespaced => Resource::namespaced(group, version, name, kind),
            Scope::Cluster => Resource::cluster(group, version, name, kind),
        };
        let traits = traits::of(group, name);
        rows.push(Row {
            shelf: traits.shelf(convert::storage_group(group, name), name),
            resource,
            list_kind: format!("{kind}List").into(),
            singular: singular.into(),
            short_names: words(short_names),
            categories: words(categories),
            verbs,
            subresources: Vec::new(),
            storage_hash: storage_hash.into(),
            traits,
            custom: None,
        });
    }
    rows.into_iter().map(Arc::new).collect()
}

// === impl Verb ===

impl Verb {
    /// All verbs, in the order discovery lists them, with the letter of the table and the name.
    pub const ALL: [(Self, char, &'static str); 8] = [
        (Self::Create, 'c', "create"),
        (Self::Delete, 'd', "delete"),
        (Self::DeleteCollection, 'x', "deletecollection"),
        (Self::Get, 'g', "get"),
        (Self::List, 'l', "list"),
        (Self::Patch, 'p', "patch"),
        (Self::Update, 'u', "update"),
        (Self::Watch, 'w', "watch"),
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(held, ..)| *held == self).map_or("", |(.., name)| name)
    }
}

// === impl Verbs ===

impl Verbs {
    /// Every verb.
    pub const EVERY: Self = Self(u8::MAX);

    /// The set of these verbs.
    #[must_use]
    pub fn of(verbs: &[Verb]) -> Self {
        Self(verbs.iter().fold(0, |set, verb| set | *verb as u8))
    }

    fn from_letters(letters: &str) -> Self {
        let of_letter =
            |letter| Verb::ALL.iter().find(|(_, held, _)| *held == letter).map_or(0, |(verb, ..)| *verb as u8);
        Self(letters.chars().fold(0, |set, letter| set | of_letter(letter)))
    }

    /// Whether it is among them.
    #[must_use]
    pub fn has(self, verb: Verb) -> bool {
        self.0 & verb as u8 != 0
    }

    /// Their names.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Verb::ALL.into_iter().filter(move |(verb, ..)| self.has(*verb)).map(|(.., name)| name)
    }
}

// === impl Row ===

impl Row {
    /// Group and plural, for messages.
    #[must_use]
    pub fn target(&self) -> GroupResource<'_> {
        GroupResource { group: &self.resource.group, resource: &self.resource.plural }
    }

    /// Group and kind, for messages.
    #[must_use]
    pub fn kind(&self) -> GroupResource<'_> {
        // Upstream names what is stored.
        let group = convert::storage_group(&self.resource.group, &self.resource.plural);
        GroupResource { group, resource: &self.resource.kind }
    }

    /// Group and kind by which the rules of the kind are found. What is not built in has none, whatever it is called.
    pub(crate) fn rules(&self) -> (&str, &str) {
        if self.custom.is_some() { ("", "") } else { (&self.resource.group, &self.resource.kind) }
    }

    /// Whether its objects live in namespaces.
    #[must_use]
    pub fn is_namespaced(&self) -> bool {
        self.resource.scope == Scope::Namespaced
    }

    /// One of its subresources.
    #[must_use]
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|part| part.name == name)
    }

    /// Whether status is kept apart.
    #[must_use]
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// Whether this is the resource with these names.
    #[must_use]
    pub fn is(&self, group: &str, plural: &str) -> bool {
        self.resource.group == group && self.resource.plural == plural
    }
}

// === impl Registry ===

impl Registry {
    pub(crate) fn new(
        store: Arc<dyn Storage>,
        clock: Clock,
        auth: Arc<Auth>,
        logs: Option<Arc<dyn Logs>>,
        authorization: Authorization,
        services: Allocator,
        unprotected_storage: bool,
    ) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            store,
            clock,
            auth,
            custom: RwLock::default(),
            served: Mutex::default(),
            cleaning: Mutex::default(),
            services,
            logs,
            authorization,
            unprotected_storage,
            is_waiting: AtomicBool::new(false),
            me: Weak::clone(me),
        })
    }

    /// Takes up what a storage that outlives its servers holds: what Services have is theirs, and stored definitions are
    /// served.
    pub(crate) fn resume(&self) {
        if let Some(row) = self.row("", "v1", "services") {
            let services = list::everything(self, &row, "");
            services
                .iter()
                .filter_map(|stored| stored.parse().ok())
                .for_each(|service| self.services.restore(&service));
        }
        self.resume_definitions();
        self.is_waiting.store(tokio::runtime::Handle::try_current().is_err(), Ordering::Relaxed);
    }

    /// Goes on with what [`resume`](Self::resume) had no runtime for.
    pub(crate) fn catch_up(&self) {
        if self.is_waiting.load(Ordering::Relaxed) && self.is_waiting.swap(false, Ordering::Relaxed) {
            self.resume_definitions();
        }
    }

    /// The resource with these names.
    #[must_use]
    pub fn row(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Row>> {
        if let Some(at) = INDEX.get(&(group, version, plural)) {
            return Some(Arc::clone(&BUILT_IN[*at]));
        }
        let key = (group.to_owned(), version.to_owned(), plural.to_owned());
        self.custom.read().get(&key).cloned()
    }

    /// Whether a group is served, in this version if one is given.
    #[must_use]
    pub fn has_group(&self, group: &str, version: Option<&str>) -> bool {
        let fits =
            |row: &Arc<Row>| row.resource.group == group && version.is_none_or(|want| row.resource.version == want);
        BUILT_IN.iter().any(fits) || self.custom.read().values().any(fits)
    }

    /// The resource with this group and plural, in whatever version.
    pub(crate) fn any_version(&self, group: &str, plural: &str) -> Option<Arc<Row>> {
        BUILT_IN.iter().find(|row| row.is(group, plural)).cloned()
    }

    /// A stored object of a built-in resource, as a tree.
    pub(crate) fn stored(&self, group: &str, version: &str, plural: &str, key: &ObjectKey) -> Option<Value> {
        let row = self.row(group, version, plural)?;
        self.store.get(&row.shelf, key)?.parse().ok()
    }
}

// === impl Answer ===

impl Answer {
    /// 200 with this body.
    #[must_use]
    pub fn ok(body: Content) -> Self {
        Self { code: 200, body, warnings: Vec::new() }
    }

    /// 201 with this body.
    #[must_use]
    pub fn created(body: Content) -> Self {
        Self { code: 201, body, warnings: Vec::new() }
    }

    pub(crate) fn warning(mut self, warnings: Vec<String>) -> Self {
        self.warnings.extend(warnings);
        self
    }
}

impl From<Status> for Answer {
    fn from(status: Status) -> Self {
        Self { code: status.code, body: Content::Status(status), warnings: Vec::new() }
    }
}

// === impl Call ===

impl Call {
    /// Where the object is.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.namespace, &self.name)
    }
}
