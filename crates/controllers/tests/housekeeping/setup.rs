//! Controllers with the options that scenarios expect.

use steersman_controllers::{root_ca, service_account_token};
use steersman_runtime::{Build, Descriptor, Manager};

use crate::accounts_scenarios::ROOT_CA;

/// Adds controllers to a manager.
pub(crate) fn all(controllers: &[Descriptor]) -> impl Fn(&Manager) + Send + Sync + 'static {
    let controllers = controllers.to_vec();
    move |manager| {
        let key = rcgen::KeyPair::generate().expect("there is randomness").serialize_pem();
        let signer = service_account_token::Signer::from_pem(key.as_bytes());
        let signer = Some(signer.expect("it is a P-256 key"));
        manager.set_options(service_account_token::Options { signer, root_ca: Some(ROOT_CA.into()) });
        manager.set_options(root_ca::Options { root_ca: Some(ROOT_CA.into()) });
        for descriptor in &controllers {
            assert_eq!(manager.build(descriptor, None), Build::Enabled, "{}", descriptor.name);
        }
    }
}
