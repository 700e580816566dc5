//! Makes the claims that pods and pod groups lack.

use std::collections::BTreeMap;
use std::sync::Arc;

use steersman_base::{Istr, Meta, ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::core::pod::ResourceClaim;
use steersman_model::resource::{ResourceClaimTemplateView, ResourceClaimView};
use steersman_model::{Kind, PodName, View};
use steersman_runtime::__internal::Children;
use steersman_runtime::__internal::writer::Naming;
use steersman_runtime::events::About;
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Context, Error, Patch, WriteError};

use super::super::metrics::Metrics;
use super::super::plan::{Holder, Problem, made_for, name_prefix};
use super::{FAILED, MANAGER, Why};
use crate::resource_claims::Named;

const CLAIMS: &Resource = &ResourceClaimView::RESOURCE;

/// Makes claims from templates.
pub(in super::super) struct Maker {
    pub(in super::super) claims: Lister<ResourceClaimView>,
    pub(in super::super) owned: Children<ResourceClaimView>,
    pub(in super::super) templates: Lister<ResourceClaimTemplateView>,
    pub(in super::super) metrics: Metrics,
}

// === impl Maker ===

impl Maker {
    /// Whether an entry lacks its claim: none was made, or the one that was made is gone, or is another's.
    pub(super) async fn is_lacking(
        &self,
        cx: &Context,
        holder: &Holder<'_>,
        entry: &ResourceClaim,
        is_ours: impl Fn(&Meta) -> bool,
    ) -> Result<bool, Error> {
        match holder.named(entry) {
            Named::Given(_) | Named::NotNeeded => Ok(false),
            Named::Unsupported => Err(refuse(cx, holder, entry, &holder.unsupported(entry))),
            Named::NotMade(_) => Ok(true),
            Named::Made(name) => {
                let key = ObjectKey { namespace: holder.meta.namespace.clone(), name: name.clone() };
                let found = match self.claims.get(&key) {
                    Some(claim) => Some(claim.meta().clone()),
                    // The cache may lag: a second claim is made only if the server does not have the first one.
                    None => cx.live.get_meta(CLAIMS, &key).await?,
                };
                Ok(!found.is_some_and(|claim| is_ours(&claim)))
            }
        }
    }

    /// Returns the claim that was made for an entry of an owner.
    pub(super) async fn find(
        &self,
        cx: &Context,
        owner: &Meta,
        entry: &ResourceClaim,
    ) -> Result<Option<Arc<ResourceClaimView>>, Error> {
        let owned = self.owned.of_any(cx, &owner.namespace, &[owner]).await?;
        Ok(made_for(entry, &owned).cloned())
    }

    /// Returns the name of the claim of an entry: of the one that was made before, or of a new one.
    pub(super) async fn find_or_make(
        &self,
        cx: &Context,
        holder: &Holder<'_>,
        entry: &ResourceClaim,
    ) -> Result<Option<Istr>, Error> {
        if let Some(claim) = self.find(cx, holder.meta, entry).await? {
            return Ok(Some(claim.meta().name.clone()));
        }
        let Some(template) = &entry.resource_claim_template_name else { return Ok(None) };
        let Some(found) = self.templates.namespace(&holder.meta.namespace).get(template) else {
            return Err(refuse(cx, holder, entry, &Problem::NoTemplate(template.clone())));
        };
        let prefix = name_prefix(&holder.meta.name, &entry.name);
        let body = |name: &str| holder.body(&entry.name, &found.spec, PodName::Chosen { name, prefix: &prefix });
        let why = Why::NoClaim { kind: holder.entry_kind(), entry: entry.name.clone() };
        let claims = self.claims.namespace(&holder.meta.namespace);
        let naming = Naming { prefix: &prefix, purpose: "", is_seen: &|name| claims.get(name).is_some() };
        let created = cx.writer.on_behalf_of(holder.meta).create_named(CLAIMS, naming, body, &why).await;
        self.metrics.created(holder, found.spec.spec().as_str(), created.is_err());
        match created {
            Ok(claim) => Ok(Some(claim.meta.name)),
            // Nothing can be created in a terminating namespace.
            Err(WriteError::NamespaceTerminating) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Applies the claims that were made to the status.
    pub(super) async fn report(
        &self,
        cx: &Context,
        holder: &Holder<'_>,
        made: &BTreeMap<Istr, Istr>,
    ) -> Result<(), Error> {
        let status = holder.statuses(made);
        let patch = Patch::Apply { object: &status, manager: MANAGER, force: true };
        let why = Why::Made { count: made.len() };
        let write = cx.writer.on_behalf_of(holder.meta);
        let written = write.patch_subresource(holder.resource, &holder.meta.key(), "status", patch, &why).await;
        // The claims of an object that is gone go with it.
        Ok(written.ok_if_gone().ok_if_replaced()?)
    }
}

/// Reports that a claim cannot be made.
pub(super) fn refuse(cx: &Context, holder: &Holder<'_>, entry: &ResourceClaim, problem: &Problem) -> Error {
    let note = format!("{} {}: {problem}", holder.entry_kind(), entry.name);
    cx.events.warning(&About::new(holder.resource, holder.meta), FAILED, note.clone());
    match problem {
        // A template that is created enqueues those who wait for it; upstream retries, too.
        Problem::NoTemplate(_) => Error::message(note),
        Problem::Unsupported { .. } | Problem::GroupClaimsOff(_) => Error::terminal(note),
    }
}
