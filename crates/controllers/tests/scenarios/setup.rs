//! Controllers with the options that scenarios expect.

use steersman_controllers::{root_ca, service_account, service_account_token};
use steersman_runtime::Descriptor;
use steersman_testing::{Builder, TestCluster};

use crate::accounts::ROOT_CA;

/// The publisher, with a certificate.
pub(crate) const ROOT_CA_PUBLISHER: Descriptor = Descriptor {
    build: |cx, workers| {
        cx.manager().set_options(root_ca::Options { root_ca: Some(ROOT_CA.into()) });
        (root_ca::DESCRIPTOR.build)(cx, workers)
    },
    ..root_ca::DESCRIPTOR
};

/// The tokens controller, with a certificate, and the rig's key or one of its own.
pub(crate) const TOKENS: Descriptor = Descriptor {
    build: |cx, workers| {
        let signer = service_account_token::Signer::from_pem(&key()).expect("it is a key");
        let root_ca = Some(ROOT_CA.into());
        cx.manager().set_options(service_account_token::Options { signer: Some(signer), root_ca });
        (service_account_token::DESCRIPTOR.build)(cx, workers)
    },
    ..service_account_token::DESCRIPTOR
};

pub(crate) fn accounts() -> Builder {
    TestCluster::builder().controllers(&[service_account::DESCRIPTOR])
}

pub(crate) fn certificates() -> Builder {
    TestCluster::builder().controllers(&[ROOT_CA_PUBLISHER])
}

pub(crate) fn tokens() -> Builder {
    TestCluster::builder().controllers(&[TOKENS])
}

/// The key that the rig's server checks tokens with; elsewhere, any.
fn key() -> Vec<u8> {
    match std::env::var_os("STEERSMAN_RIG_DIR") {
        Some(rig) => std::fs::read(std::path::Path::new(&rig).join("sa.key")).expect("the rig has a key"),
        None => rcgen::KeyPair::generate().expect("there is randomness").serialize_pem().into_bytes(),
    }
}
