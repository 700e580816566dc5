//! Controllers with the options that scenarios expect.

use steersman_controllers::{root_ca, service_account_token};
use steersman_runtime::Descriptor;

use crate::accounts_scenarios::ROOT_CA;

/// The publisher, with a certificate.
pub(crate) const ROOT_CA_PUBLISHER: Descriptor = Descriptor {
    build: |cx, workers| {
        cx.manager().set_options(root_ca::Options { root_ca: Some(ROOT_CA.into()) });
        (root_ca::DESCRIPTOR.build)(cx, workers)
    },
    ..root_ca::DESCRIPTOR
};

/// The tokens controller, with a certificate and a key of its own.
pub(crate) const TOKENS: Descriptor = Descriptor {
    build: |cx, workers| {
        let key = rcgen::KeyPair::generate().expect("there is randomness").serialize_pem();
        let signer = service_account_token::Signer::from_pem(key.as_bytes()).expect("it is a P-256 key");
        let root_ca = Some(ROOT_CA.into());
        cx.manager().set_options(service_account_token::Options { signer: Some(signer), root_ca });
        (service_account_token::DESCRIPTOR.build)(cx, workers)
    },
    ..service_account_token::DESCRIPTOR
};
