//! The shell: observe → read schemas → check → apply the status.

use std::collections::BTreeMap;

use serde_json::Value;
use steersman_base::{ObjectKey, Resource};
use steersman_cel::Schema;
use steersman_informer::Lister;
use steersman_model::admissionregistration::ValidatingAdmissionPolicyView;
use steersman_model::{Kind, View};
use steersman_runtime::live::LiveReadError;
use steersman_runtime::mapper::{Discovered, RestMapper};
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Error, Patch, Reconciler, reasons};

use super::kinds::{self, Known, Matched, ParamKind, PolicySpec, VersionKind};
use super::plan::{self, Schemas};
use super::{map, openapi};

const POLICIES: &Resource = &ValidatingAdmissionPolicyView::RESOURCE;
/// Upstream's field manager of the status.
const MANAGER: &str = "validatingadmissionpolicy-status";
/// The index of OpenAPI documents.
const INDEX: &str = "/openapi/v3";

/// The controller's shell: the cache that it reads from.
pub(super) struct PolicyStatus {
    pub(super) policies: Lister<ValidatingAdmissionPolicyView>,
    pub(super) mapper: RestMapper,
}

reasons! {
    /// Why the controller of policy statuses writes.
    pub enum Why {
        /// The types of a new generation of a policy have been checked.
        Checked { count: usize } => "the types of its expressions have been checked: {count} warnings",
    }
}

// === impl PolicyStatus ===

impl Reconciler for PolicyStatus {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(policy) = self.policies.get(key).filter(|policy| map::is_unchecked(policy)) else {
            return Ok(Action::Done);
        };
        // The API server has accepted it; if it cannot be read, it stays so until the policy changes.
        let spec: PolicySpec = match policy.spec.as_str() {
            "" => PolicySpec::default(),
            spec => serde_json::from_str(spec).map_err(Error::terminal)?,
        };
        let Matched { kinds, .. } = self.matched(&spec).await?;
        let of_params = spec.param_kind.as_ref().and_then(ParamKind::version_kind);
        let schemas = schemas(cx, kinds.iter().chain(&of_params)).await?;
        let warnings = plan::warnings(&spec, &kinds, &schemas);
        let object = plan::applied(&policy, &warnings);
        let write = cx.writer.on_behalf_of(policy.meta());
        let apply = Patch::Apply { object: &object, manager: MANAGER, force: true };
        let why = Why::Checked { count: warnings.len() };
        let applied = write.patch_subresource(POLICIES, key, "status", apply, &why).await;
        // A policy that was deleted or replaced has an event of its own.
        applied.ok_if_gone().ok_if_replaced()?;
        Ok(Action::Done)
    }
}

impl PolicyStatus {
    /// Returns the kinds that a policy matches. If one is not known, discovery is asked again, once.
    async fn matched(&self, spec: &PolicySpec) -> Result<Matched, Error> {
        let found = matched(spec, &*self.mapper.resources().await?);
        if !found.has_unknown {
            return Ok(found);
        }
        Ok(matched(spec, &*self.mapper.refresh().await?))
    }
}

fn matched(spec: &PolicySpec, discovered: &Discovered) -> Matched {
    let known = discovered.resources().map(|found| Known { resource: &found.resource, singular: &found.singular });
    kinds::matched(spec, &known.collect::<Vec<_>>())
}

/// Reads the schemas of kinds from the server: each document once, and only if there is a kind. A kind that the server does
/// not have has none.
async fn schemas(cx: &Context, kinds: impl Iterator<Item = &VersionKind>) -> Result<Schemas, LiveReadError> {
    let mut by_document: BTreeMap<String, Vec<&VersionKind>> = BTreeMap::new();
    for kind in kinds {
        by_document.entry(kind.document()).or_default().push(kind);
    }
    let mut schemas = Schemas::new();
    if by_document.is_empty() {
        return Ok(schemas);
    }
    let index = cx.live.get_document(INDEX).await?.unwrap_or_default();
    for (name, kinds) in by_document {
        let Some(path) = openapi::path(&index, &name) else { continue };
        let document: Value = cx.live.get_document(path).await?.unwrap_or_default();
        for kind in kinds {
            if let Some(schema) = openapi::schema(&document, kind) {
                schemas.insert(kind.clone(), Schema::new(&schema));
            }
        }
    }
    Ok(schemas)
}
