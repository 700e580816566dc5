#![doc = include_str!("../docs/serviceaccount-token-controller.md")]
//!
//! Follows `pkg/controller/serviceaccount/tokens_controller.go` and `pkg/serviceaccount` of Kubernetes 1.37.1.

use std::sync::Arc;

use steersman_informer::{Selection, SharedInformer};
use steersman_model::Kind;
use steersman_model::core::{ServiceAccountView, TokenSecretView};
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Disabled, FlagFile, Flags};
use steersman_runtime::Descriptor;

use crate::{root_ca_certificate_publisher, table};

mod der;
mod map;
mod plan;
mod reference;
mod signer;
mod sync;
#[cfg(test)]
mod tests;

pub use signer::{KeyError, Signer};
pub use sync::Why;

/// The descriptor of the serviceaccount-token controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "serviceaccount-token-controller",
    needs: const { &[ServiceAccountView::RESOURCE, TokenSecretView::RESOURCE] },
    options: Options::from_flags,
    build,
});

/// Options of the controller, set by flags.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The signer of tokens (`--service-account-private-key-file`). Without it, the controller does not run.
    pub signer: Option<Signer>,
    /// The certificates for the secrets, as PEM (`--root-ca-file`, else the certificate authority of the kubeconfig),
    /// if any.
    pub root_ca: Option<Arc<str>>,
}

/// The queue of deleted secrets.
const REFERENCES: &str = "serviceaccount-token-references";
/// The queue of secrets whose account was deleted.
const DEPARTURES: &str = "serviceaccount-token-departures";

// === impl Options ===

impl Options {
    /// Returns the options that flags and feature gates set.
    #[must_use]
    pub fn from_flags(flags: &Flags<'_>) -> Self {
        let signer = flags.file("service-account-private-key-file", |FlagFile { path, text }| {
            Signer::from_pem(text.as_bytes()).map_err(|error| format!("cannot use {path}: {error}"))
        });
        Self { signer, root_ca: root_ca_certificate_publisher::root_ca_of(flags) }
    }

    /// Sets the signer of tokens.
    #[must_use]
    pub fn signer(mut self, signer: impl Into<Option<Signer>>) -> Self {
        self.signer = signer.into();
        self
    }

    /// Sets the certificates for the secrets, as PEM, if any.
    #[must_use]
    pub fn root_ca(mut self, root_ca: impl Into<Option<Arc<str>>>) -> Self {
        self.root_ca = root_ca.into();
        self
    }
}

/// Returns the informer of token secrets, which controllers share.
pub(crate) fn informer(cx: &ControllerContext) -> SharedInformer<TokenSecretView> {
    let of_this_type = Selection::everything().with_fields(&format!("type={}", plan::TYPE));
    cx.informers.informer_in(of_this_type)
}

fn build(cx: &ControllerContext, options: Options) -> Result<Built, Disabled> {
    let Options { signer, root_ca } = options;
    let Some(signer) = signer else {
        return Err(Disabled::because("there is no private key: see --service-account-private-key-file"));
    };
    let accounts = cx.informer::<ServiceAccountView>();
    let secrets = informer(cx);
    let by_account = map::ByAccount(secrets.index(map::account_of));
    let tokens = by_account.clone();

    let filled = cx.controller(&secrets).watch(&accounts, move |change| by_account.secrets_to_check(change));
    let filled = filled.reconcile(sync::Tokens {
        accounts: accounts.lister(),
        secrets: secrets.lister(),
        fill: plan::Fill { signer, root_ca: root_ca.map(|root_ca| plan::base64(root_ca.as_bytes())) },
    });
    let departures = cx
        .another(DEPARTURES, &secrets)
        .without_main_watch()
        .watch(&accounts, move |change| tokens.tokens_to_delete(change))
        .reconcile(sync::Departures { secrets: secrets.lister() });
    let references = cx
        .another(REFERENCES, &secrets)
        .without_main_watch()
        .needs_cache(&accounts)
        .watch(&secrets, reference::keys_of_deleted)
        .reconcile(sync::References { accounts: accounts.lister(), secrets: secrets.lister() });
    Ok(filled.and(departures).and(references))
}
