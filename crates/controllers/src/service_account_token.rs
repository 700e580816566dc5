//! The tokens controller: secrets with the token of a service account are filled, and go when the account does.
//!
//! 1. A secret of type `kubernetes.io/service-account-token` that names an account gets what is missing: a token, the
//!    namespace, and the cluster's certificates, whenever they are not the right ones.
//! 2. A secret whose account is gone, or is another one of that name, is deleted: after a look at the server, and only
//!    this secret, never another one that got its name. A token that does not say its account's uid goes with the account
//!    that is seen to go.
//! 3. A secret that was deleted is taken off the account's list.
//! 4. Only secrets of this type are watched whole, and tokens are not kept.
//! 5. What is written is the secret as the server has it: an older one is left to the event that tells of the newer one.
//!
//! Nothing is done without a private key to sign with. The tokens are *legacy* ones, which do not end by themselves.
//!
//! Follows `pkg/controller/serviceaccount/tokens_controller.go` and `pkg/serviceaccount` of Kubernetes 1.37.1.

use std::sync::Arc;

use steersman_base::ObjectKey;
use steersman_informer::{Change, Scope};
use steersman_model::core::{ServiceAccountView, TokenSecretView};
use steersman_model::{Kind, View};
use steersman_runtime::{Build, BuildContext, Descriptor, Enabled, Stage, Workers};

mod der;
mod map;
mod plan;
mod reference;
mod signer;
mod sync;
#[cfg(test)]
mod tests;

use reference::Reference;
pub use signer::{KeyError, Signer};
pub use sync::Why;

/// The controller's row.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "serviceaccount-token-controller",
    aliases: &["serviceaccount-token"],
    account: "tokens-controller",
    default: Enabled::Yes,
    gates: &[],
    needs: &[ServiceAccountView::RESOURCE, TokenSecretView::RESOURCE],
    workers: Workers::flag("concurrent-serviceaccount-token-syncs", 5),
    stage: Stage::First,
    build,
};

/// What flags say.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What signs tokens (`--service-account-private-key-file`). Without it, the controller does not run.
    pub signer: Option<Signer>,
    /// The certificates that go into the secrets, as PEM (`--root-ca-file`, else the authority of the kubeconfig); none, if
    /// nothing is said.
    pub root_ca: Option<Arc<str>>,
}

/// The queue of deleted secrets.
const REFERENCES: &str = "serviceaccount-token-references";
/// The queue of secrets whose account was deleted.
const DEPARTURES: &str = "serviceaccount-token-departures";
/// All queues go by this name in metrics, as upstream's do.
const QUEUE: &str = "serviceaccount_tokens_service";
/// Upstream's: so often a key is tried again until it changes.
const RETRIES_MAX: u32 = 10;

fn build(cx: &BuildContext, workers: usize) -> Build {
    let Options { signer, root_ca } = cx.options::<Options>();
    let Some(signer) = signer else {
        return Build::Disabled("there is no private key: see --service-account-private-key-file".into());
    };
    let accounts = cx.informers.informer::<ServiceAccountView>();
    let tokens = Scope::everything().with_fields(&format!("type={}", plan::TYPE));
    let secrets = cx.informers.informer_in::<TokenSecretView>(tokens);
    let by_account = secrets.index(map::account_of);

    let tokens = by_account.clone();
    let tokens_of = move |change: &Change<ServiceAccountView>| -> Vec<ObjectKey> {
        let Some(account) = map::gone(change) else { return Vec::new() };
        let secrets = tokens.get(&account.key()).into_iter();
        let its = secrets.filter(|secret| map::is_token_of(secret, &account.uid));
        its.map(|secret| Reference::to_gone(account, secret.meta()).to_key()).collect()
    };
    let others_of = move |change: &Change<ServiceAccountView>| -> Vec<ObjectKey> {
        let Some(account) = map::gone(change) else { return Vec::new() };
        let secrets = by_account.get(&account.key()).into_iter();
        secrets.filter(|secret| !map::is_token_of(secret, &account.uid)).map(|secret| secret.meta().key()).collect()
    };
    cx.controller_on(DESCRIPTOR.name, &secrets)
        .queue_name(QUEUE)
        .watch(&accounts, others_of)
        .workers(workers)
        .give_up_after(RETRIES_MAX)
        .reconcile_with(sync::Tokens {
            client: cx.client.clone(),
            accounts: accounts.lister(),
            secrets: secrets.lister(),
            fill: plan::Fill { signer, root_ca: root_ca.map(|root_ca| plan::base64(root_ca.as_bytes())) },
        });
    cx.controller_on(DEPARTURES, &secrets)
        .queue_name(QUEUE)
        .without_main_watch()
        .watch(&accounts, tokens_of)
        .workers(workers)
        .give_up_after(RETRIES_MAX)
        .reconcile_with(sync::Departures { client: cx.client.clone(), secrets: secrets.lister() });
    cx.controller_on(REFERENCES, &secrets)
        .queue_name(QUEUE)
        .without_main_watch()
        .watch(&accounts, |_| Vec::new())
        .watch(&secrets, |change| reference::of_deleted(change).map(|gone| gone.to_key()))
        .workers(workers)
        .give_up_after(RETRIES_MAX)
        .reconcile_with(sync::References {
            client: cx.client.clone(),
            accounts: accounts.lister(),
            secrets: secrets.lister(),
        });
    Build::Enabled
}
