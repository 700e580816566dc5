//! What a CustomResourceDefinition does: its resource is served, and its conditions say so.
//!
//! 1. Names are accepted when the definition is written, or refused if another definition of the group has them; accepted
//!    names are served at once, and the definition is established a moment later.
//! 2. A definition that is deleted takes its objects with it: it is gone when they are, whether or not it is served.
//! 3. Watches of its objects end with it, and whenever it is served differently; its history is forgotten a minute later.
//! 4. Objects of a definition are kept on a collection of that definition alone, which no built-in resource has; a definition of
//!    what is built in is refused.
//! 5. Definitions that the storage holds already when the server starts are served from the start.
//!
//! Follows `apiextensions-apiserver/pkg/controller/{status,establish,finalizer}` of Kubernetes 1.37.

mod conditions;

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base64::Engine;
use serde_json::{Map, Value};
use steersman_base::names::finalizers::CUSTOM_RESOURCE_CLEANUP;
use steersman_base::{ObjectKey, Resource, Scope};
use tokio_util::sync::CancellationToken;

use super::conversion::Conversion;
use super::custom::{Custom, CustomRules, CustomSchema, ScalePaths};
use super::delete::DeleteOptions;
use super::list::list_all;
use super::object_meta::{meta_text, metadata};
use super::owners::FieldTypes;
use super::query::strings;
use super::strategy::{Strategy, USER_METADATA};
use super::write::new_state;
use super::{Registry, Row, Subresource, Verb, Verbs, built_in};
use crate::discovery::version_rank;
use crate::field::{FieldError, Path};
use crate::kinds::Rules;
use crate::store::{Change, Collection, Expect, Range};

pub(crate) use conditions::{APPROVAL, approval, set_condition};
use conditions::{UsedNames, is_true};

/// The time for which names are accepted before a definition is established. Upstream waits too, so that all servers
/// know it.
const ESTABLISH_AFTER: Duration = Duration::from_millis(5);
/// The time for which a deleted definition stays before its objects are deleted.
const CLEAN_UP_AFTER: Duration = Duration::from_millis(5);
/// The time for which the history of a deleted definition's objects is kept: as long as upstream lets requests finish.
const FORGET_AFTER: Duration = Duration::from_secs(60);

/// The rules of custom resources.
static CUSTOM: Rules = Rules::DEFAULT.status_resets(&["metadata", "spec"]).with_strategy(Strategy {
    unconditional_update: false,
    status_keeps_metadata: USER_METADATA,
    ..Strategy::GENERATION
});

/// A definition as it is served.
#[derive(Debug)]
pub(crate) struct Served {
    spec: Value,
    names: Value,
    is_terminating: bool,
    /// Whether stored objects may not be what the schemas say.
    is_reshaped: bool,
    /// Cancelled when it is no longer served this way.
    withdrawn: CancellationToken,
}

impl Registry {
    /// Serves the definitions that are stored, and goes on with what they wait for.
    pub(super) fn resume_definitions(&self) {
        let Some(row) = self.row("apiextensions.k8s.io", "v1", "customresourcedefinitions") else { return };
        for stored in list_all(self, &row, "") {
            if let Ok(definition) = stored.parse() {
                self.definition_changed(definition, stored.revision);
            }
        }
    }

    /// Serves a definition that has been written, and continues what it waits for.
    pub(crate) fn definition_changed(&self, mut definition: Value, revision: u64) {
        let name = meta_text(&definition, "name").to_owned();
        let group = definition["spec"]["group"].clone();
        // What follows from the spec has been said when it was first served so.
        let is_known = self.serves(&definition);
        if is_true(&definition, "NamesAccepted") {
            self.serve(&definition);
        }
        if !definition["metadata"]["deletionTimestamp"].is_null() {
            if strings(&definition["metadata"]["finalizers"]).contains(&CUSTOM_RESOURCE_CLEANUP) {
                self.clean_up_later(name);
            }
            return;
        }
        let before = definition["status"].clone();
        let now = self.clock.now().to_string();
        conditions::accept_names(&mut definition, &self.used_names(&group), &now);
        if !is_known {
            conditions::set_derived(&mut definition, &now);
        }
        if definition["status"] != before && self.write_definition(&name, &definition, revision) {
            return; // The write has come back here.
        }
        let stored = self.definition(&name);
        if stored.is_some_and(|(stored, _)| is_true(&stored, "NamesAccepted") && !is_true(&stored, "Established")) {
            self.later(move |registry| async move {
                tokio::time::sleep(ESTABLISH_AFTER).await;
                registry.establish(&name);
            });
        }
    }

    /// Does something on its own, if there is a runtime to do it in.
    fn later<F: Future<Output = ()> + Send + 'static>(&self, work: impl FnOnce(Arc<Self>) -> F) {
        if let (Some(registry), Ok(runtime)) = (self.me.upgrade(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(work(registry));
        }
    }

    fn definition(&self, name: &str) -> Option<(Value, u64)> {
        let row = self.row("apiextensions.k8s.io", "v1", "customresourcedefinitions")?;
        let stored = self.store.get(&row.collection, &ObjectKey::cluster(name))?;
        Some((stored.parse().ok()?, stored.revision))
    }

    fn write_definition(&self, name: &str, definition: &Value, revision: u64) -> bool {
        let Some(row) = self.row("apiextensions.k8s.io", "v1", "customresourcedefinitions") else { return false };
        let mut definition = definition.clone();
        if let Some((stored, _)) = self.definition(name) {
            self.record_own_status(Arc::clone(&row), &stored, &mut definition);
        }
        let change = Change::Put(new_state(&row, &definition));
        match self.store.commit(&row.collection, &ObjectKey::cluster(name), Expect::Revision(revision), change) {
            Ok(stored) => {
                (row.rules.after_write)(self, &stored);
                true
            }
            // Somebody has written it since, and that write has come here too.
            Err(_) => false,
        }
    }

    fn establish(&self, name: &str) {
        let Some((mut definition, revision)) = self.definition(name) else { return };
        if is_true(&definition, "NamesAccepted") && !is_true(&definition, "Established") {
            let now = self.clock.now().to_string();
            let message = "the initial names have been accepted";
            set_condition(&mut definition, "Established", "True", "InitialNamesAccepted", message, &now);
            self.write_definition(name, &definition, revision);
        }
    }

    /// The names that definitions of a group have.
    fn used_names(&self, group: &Value) -> UsedNames {
        let mut used = UsedNames::default();
        for definition in self.definitions_of(group) {
            used.add(&definition["status"]["acceptedNames"]);
        }
        used
    }

    fn definitions_of(&self, group: &Value) -> Vec<Value> {
        let Some(row) = self.row("apiextensions.k8s.io", "v1", "customresourcedefinitions") else { return Vec::new() };
        let definitions = list_all(self, &row, "").into_iter().filter_map(|stored| stored.parse().ok());
        definitions.filter(|definition: &Value| definition["spec"]["group"] == *group).collect()
    }

    /// Looks again at definitions that wait for names, because one of their group has gone.
    fn retry_names(&self, group: &Value) {
        for waiting in self.definitions_of(group).into_iter().filter(|it| !is_true(it, "NamesAccepted")) {
            let name = meta_text(&waiting, "name");
            if let Some((definition, revision)) = self.definition(name) {
                self.definition_changed(definition, revision);
            }
        }
    }

    /// Serves a definition. Nothing changes if it is served so already: what is compiled of it is kept.
    fn serve(&self, definition: &Value) {
        let mut rows = self.custom.write();
        let group = definition["spec"]["group"].as_str().unwrap_or_default();
        let plural = plural_of(definition);
        if is_built_in(group, plural) {
            return;
        }
        let collection = collection_of(group, plural);
        let spec = &definition["spec"];
        let names = &definition["status"]["acceptedNames"];
        let is_terminating = is_terminating(definition);
        let is_same = |held: &Served| held.spec == *spec && held.names == *names;
        let is_served = |held: &Served| is_same(held) && held.is_terminating == is_terminating;
        if self.served.lock().get(&collection.name).is_some_and(is_served) {
            return;
        }
        let conversion = Conversion::read(&definition["spec"], &self.me).map(Arc::new);
        if conversion.is_some() {
            self.has_conversions.store(true, Ordering::Relaxed);
        }
        let is_reshaped = self.is_reshaped(definition, &collection);
        rows.retain(|(held_group, _, held_plural), _| held_group != group || held_plural != plural);
        for row in rows_of(definition, is_reshaped, conversion.as_ref()) {
            let key = (group.to_owned(), row.resource.version.to_string(), plural.to_owned());
            rows.insert(key, Arc::new(row));
        }
        let mut served = self.served.lock();
        if let Some(held) = served.get_mut(&collection.name).filter(|held| is_same(held)) {
            held.is_terminating = is_terminating;
            return;
        }
        let withdrawn = CancellationToken::new();
        let as_now = Served { spec: spec.clone(), names: names.clone(), is_terminating, is_reshaped, withdrawn };
        if let Some(before) = served.insert(collection.name, as_now) {
            before.withdrawn.cancel();
        }
    }

    /// Whether the definition is served as it is.
    fn serves(&self, definition: &Value) -> bool {
        let group = definition["spec"]["group"].as_str().unwrap_or_default();
        let collection = collection_of(group, plural_of(definition));
        self.served.lock().get(&collection.name).is_some_and(|held| held.spec == definition["spec"])
    }

    /// Whether the stored objects of a definition may not be what its schemas say: it has changed since they were stored, or
    /// perhaps has, or its versions have different schemas.
    fn is_reshaped(&self, definition: &Value, collection: &Collection) -> bool {
        let versions = definition["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_converted = definition["spec"]["conversion"]["strategy"] == "Webhook";
        if is_converted || versions.windows(2).any(|pair| pair[0]["schema"] != pair[1]["schema"]) {
            return true;
        }
        let before = self
            .served
            .lock()
            .get(&collection.name)
            .map(|held| held.is_reshaped || held.spec["versions"] != definition["spec"]["versions"]);
        before != Some(false)
            && self.store.list(collection, &Range::default(), None).is_ok_and(|page| !page.objects.is_empty())
    }

    /// Returns a token that is cancelled when a resource is no longer served as this row says; never if it is built in.
    pub(crate) fn withdrawal_of(&self, row: &Row) -> CancellationToken {
        if row.custom.is_none() {
            return CancellationToken::new();
        }
        let served = self.served.lock().get(&row.collection.name).map(|served| served.withdrawn.clone());
        served.unwrap_or_else(|| {
            let gone = CancellationToken::new();
            gone.cancel();
            gone
        })
    }

    /// The rows of definitions that are served.
    pub(crate) fn custom_rows(&self) -> Vec<Arc<Row>> {
        self.custom.read().values().cloned().collect()
    }

    /// Stops serving a definition.
    pub(crate) fn withdraw(&self, definition: &Value) {
        let group = definition["spec"]["group"].as_str().unwrap_or_default();
        let plural = definition["spec"]["names"]["plural"].as_str().unwrap_or_default();
        self.custom.write().retain(|(held_group, _, held_plural), _| held_group != group || held_plural != plural);
        let collection = collection_of(group, plural);
        if let Some(served) = self.served.lock().remove(&collection.name) {
            served.withdrawn.cancel();
            self.later(move |registry| async move {
                tokio::time::sleep(FORGET_AFTER).await;
                if !registry.served.lock().contains_key(&collection.name) {
                    registry.store.forget(&collection);
                }
            });
        }
        self.retry_names(&definition["spec"]["group"]);
    }

    /// Deletes the objects of a deleted definition, unless that is being done already.
    fn clean_up_later(&self, name: String) {
        if !self.cleaning.lock().insert(name.clone()) {
            return;
        }
        self.later(move |registry| async move {
            registry.clean_up(&name).await;
            registry.cleaning.lock().remove(&name);
        });
    }

    /// Deletes the objects of a deleted definition, waits until they are gone, and lets it go.
    async fn clean_up(&self, name: &str) {
        tokio::time::sleep(CLEAN_UP_AFTER).await;
        self.deletion_goes_on(name);
        let Some((mut definition, _)) = self.definition(name) else { return };
        // Objects are there whether or not a version is served now.
        for version in definition["spec"]["versions"].as_array_mut().into_iter().flatten() {
            version["served"] = true.into();
        }
        if let Some(row) = rows_of(&definition, false, None).into_iter().next() {
            let mut signal = self.store.changes(&row.collection);
            loop {
                signal.mark_unchanged();
                for object in list_all(self, &row, "") {
                    let _ = self.delete_object(&row, &object.key, &DeleteOptions::default(), false, None);
                }
                if list_all(self, &row, "").is_empty() || self.definition(name).is_none() {
                    break;
                }
                if signal.changed().await.is_err() {
                    return;
                }
            }
        }
        self.release(name);
    }

    fn deletion_goes_on(&self, name: &str) {
        let Some((mut definition, revision)) = self.definition(name) else { return };
        let now = self.clock.now().to_string();
        let message = "CustomResource deletion is in progress";
        set_condition(&mut definition, "Terminating", "True", "InstanceDeletionInProgress", message, &now);
        self.write_definition(name, &definition, revision);
    }

    fn release(&self, name: &str) {
        let Some(row) = self.row("apiextensions.k8s.io", "v1", "customresourcedefinitions") else { return };
        while let Some((mut definition, revision)) = self.definition(name) {
            let held = strings(&definition["metadata"]["finalizers"]);
            let kept: Vec<String> =
                held.into_iter().filter(|held| *held != CUSTOM_RESOURCE_CLEANUP).map(str::to_owned).collect();
            let is_last = kept.is_empty();
            metadata(&mut definition).insert("finalizers".into(), kept.into());
            let now = self.clock.now().to_string();
            let (reason, message) = match is_true(&definition, "Established") {
                true => ("InstanceDeletionCompleted", "removed all instances"),
                false => ("NeverEstablished", "resource was never established"),
            };
            set_condition(&mut definition, "Terminating", "False", reason, message, &now);
            let change = if is_last { Change::Delete(None) } else { Change::Put(new_state(&row, &definition)) };
            if self.store.commit(&row.collection, &ObjectKey::cluster(name), Expect::Revision(revision), change).is_ok()
            {
                if is_last {
                    self.withdraw(&definition);
                }
                return;
            }
        }
    }
}

/// The plural of a definition, which never changes.
fn plural_of(definition: &Value) -> &str {
    definition["spec"]["names"]["plural"].as_str().unwrap_or_default()
}

/// Whether a resource is built in, in any version.
fn is_built_in(group: &str, plural: &str) -> bool {
    built_in().iter().any(|row| row.resource.group == group && row.resource.plural == plural)
}

/// Returns the error of a definition whose group and plural are built in. Upstream would take one, keep its objects apart
/// from the built-in ones, and serve versions that are not built in; here no two resources have one name.
pub(crate) fn claims_built_in(definition: &Value) -> Option<FieldError> {
    let group = definition["spec"]["group"].as_str().unwrap_or_default();
    let plural = plural_of(definition);
    let path = Path::new("spec").child("names").child("plural");
    is_built_in(group, plural)
        .then(|| FieldError::invalid(&path, plural, format!("{plural}.{group} is built into the API server")))
}

fn is_terminating(definition: &Value) -> bool {
    !definition["metadata"]["deletionTimestamp"].is_null()
}

/// Returns discovery's name for the stored version: the beginning of a hash of group, version and kind.
fn storage_hash(group: &str, version: &str, kind: &str) -> String {
    let suite = rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
    let Some(suite) = suite.tls13() else { return String::new() };
    let hash = suite.common.hash_provider.hash(format!("{group}/{version}/{kind}").as_bytes());
    base64::engine::general_purpose::STANDARD.encode(&hash.as_ref()[..8])
}

/// One row for each version that is served.
fn rows_of(definition: &Value, is_reshaped: bool, conversion: Option<&Arc<Conversion>>) -> Vec<Row> {
    let spec = &definition["spec"];
    let names = &definition["status"]["acceptedNames"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let words = |value: &Value| strings(value).into_iter().map(|word| Cow::Owned(word.to_owned())).collect::<Vec<_>>();
    let versions: Vec<_> = spec["versions"].as_array().into_iter().flatten().collect();
    let storage = versions.iter().find(|version| version["storage"] == Value::Bool(true));
    let storage_version = storage.map(|version| text(&version["name"])).unwrap_or_default();
    let group = text(&spec["group"]);
    let plural = plural_of(definition).to_owned();
    let kind = text(&names["kind"]);
    let served = versions.iter().filter(|version| version["served"] == Value::Bool(true));
    let of_version = |version: &&Value| {
        let (subresources, scale) = subresources_of(&kind, &version["subresources"]);
        Row {
            resource: Resource {
                group: group.clone().into(),
                version: text(&version["name"]).into(),
                plural: plural.clone().into(),
                kind: kind.clone().into(),
                scope: if spec["scope"] == "Namespaced" { Scope::Namespaced } else { Scope::Cluster },
            },
            list_kind: text(&names["listKind"]).into(),
            singular: text(&names["singular"]).into(),
            short_names: words(&names["shortNames"]),
            categories: words(&names["categories"]),
            verbs: Verbs::EVERY,
            subresources,
            storage_hash: storage_hash(&group, &storage_version, &kind).into(),
            collection: collection_of(&group, &plural),
            rules: &CUSTOM,
            field_types: FieldTypes::default(),
            custom: Some(Custom {
                document: version["schema"]["openAPIV3Schema"].clone(),
                schema: CustomSchema::default(),
                rules: CustomRules::default(),
                preserves_unknown: spec["preserveUnknownFields"] == Value::Bool(true),
                storage_version: storage_version.clone(),
                scale,
                is_terminating: is_terminating(definition),
                columns: version["additionalPrinterColumns"].as_array().cloned().unwrap_or_default(),
                selectable: selectable_of(version),
                warning: deprecation_of(version, &group, &kind, &versions),
                conversion: conversion.cloned(),
                is_reshaped,
            }),
            discovered: std::sync::OnceLock::new(),
        }
    };
    served.map(of_version).collect()
}

/// The paths of selectable fields, without the leading point.
fn selectable_of(version: &Value) -> Vec<String> {
    let fields = version["selectableFields"].as_array().into_iter().flatten();
    let paths = fields.filter_map(|field| field["jsonPath"].as_str());
    paths.map(|path| path.trim_start_matches('.').to_owned()).collect()
}

/// Returns the warning to users of a deprecated version: the definition's words, or upstream's.
fn deprecation_of(version: &Value, group: &str, kind: &str, versions: &[&Value]) -> Option<String> {
    if version["deprecated"] != Value::Bool(true) {
        return None;
    }
    if let Some(warning) = version["deprecationWarning"].as_str() {
        return Some(warning.to_owned());
    }
    let name = version["name"].as_str().unwrap_or_default();
    let usable = versions
        .iter()
        .filter(|other| other["served"] == Value::Bool(true) && other["deprecated"] != Value::Bool(true));
    let newer =
        usable.filter_map(|other| other["name"].as_str()).filter(|other| version_rank(other) < version_rank(name));
    let instead = newer.min_by_key(|other| version_rank(other));
    let instead = instead.map(|other| format!("; use {group}/{other} {kind}")).unwrap_or_default();
    Some(format!("{group}/{name} {kind} is deprecated{instead}"))
}

/// Returns the collection of the objects of a definition: no group and no plural has a slash, and no two definitions
/// have one name.
fn collection_of(group: &str, plural: &str) -> Collection {
    CUSTOM.strategy.collection("", &format!("custom/{plural}.{group}"))
}

fn subresources_of(kind: &str, declared: &Value) -> (Vec<Subresource>, Option<ScalePaths>) {
    let verbs = Verbs::of(&[Verb::Get, Verb::Patch, Verb::Update]);
    let mut parts = Vec::new();
    let declared: &Map<String, Value> = match declared {
        Value::Object(map) => map,
        _ => return (parts, None),
    };
    if declared.contains_key("status") {
        parts.push(Subresource { name: "status".into(), kind: kind.to_owned().into(), answer: None, verbs });
    }
    let scale = declared.get("scale").filter(|scale| scale.is_object()).map(|scale| {
        let path = |field: &str| scale[field].as_str().unwrap_or_default().to_owned();
        ScalePaths {
            spec: path("specReplicasPath"),
            status: path("statusReplicasPath"),
            selector: path("labelSelectorPath"),
        }
    });
    if scale.is_some() {
        let answer = Some((Cow::Borrowed("autoscaling"), Cow::Borrowed("v1")));
        parts.push(Subresource { name: "scale".into(), kind: "Scale".into(), answer, verbs });
    }
    (parts, scale)
}
