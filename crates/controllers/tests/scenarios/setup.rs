//! Controllers with the options that scenarios expect.

use steersman_controllers::{root_ca_certificate_publisher, serviceaccount, serviceaccount_token};
use steersman_runtime::Descriptor;
use steersman_testing::{Builder, TestCluster};

use crate::accounts::ROOT_CA;

/// The publisher, with a certificate.
pub(crate) const ROOT_CA_PUBLISHER: Descriptor = root_ca_certificate_publisher::DESCRIPTOR.prepared_by(|manager| {
    manager.set_options(root_ca_certificate_publisher::Options { root_ca: Some(ROOT_CA.into()) });
});

/// The tokens controller, with a certificate, and the rig's key or one of its own.
pub(crate) const TOKENS: Descriptor = serviceaccount_token::DESCRIPTOR.prepared_by(|manager| {
    let signer = serviceaccount_token::Signer::from_pem(&key()).expect("it is a key");
    let root_ca = Some(ROOT_CA.into());
    manager.set_options(serviceaccount_token::Options { signer: Some(signer), root_ca });
});

pub(crate) fn accounts() -> Builder {
    TestCluster::builder().controllers(&[serviceaccount::DESCRIPTOR])
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
