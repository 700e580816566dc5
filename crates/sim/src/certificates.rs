//! The certificate authority of worlds, and the requests that users make for certificates. They are made once per process:
//! to make a key takes longer than to use it.

use std::sync::LazyLock;

/// A certificate authority, in PEM.
pub(crate) struct Authority {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// A request for a certificate.
pub(crate) struct Asked {
    pub(crate) signer: &'static str,
    pub(crate) usages: &'static [&'static str],
    /// For how many seconds; the signer decides if it does not say.
    pub(crate) seconds: Option<i32>,
    pub(crate) pem: String,
}

/// One per process.
pub(crate) static AUTHORITY: LazyLock<Authority> = LazyLock::new(|| {
    let key = rcgen::KeyPair::generate().expect("there is randomness");
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).expect("nothing is missing").pem();
    Authority { certificate, key: key.serialize_pem() }
});

/// What users ask for: the first, the second and the sixth are given, if they are approved; the others never.
pub(crate) static ASKED: LazyLock<Vec<Asked>> = LazyLock::new(|| {
    const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
    const KUBELET: &str = "kubernetes.io/kube-apiserver-client-kubelet";
    const SERVING: &str = "kubernetes.io/kubelet-serving";
    const NODE: [&str; 2] = ["system:node:node-0", "system:nodes"];
    const JANE: [&str; 2] = ["jane", "developers"];
    let asked = |signer, [name, group]: [&str; 2], host: Option<&str>, usages, seconds| Asked {
        signer,
        usages,
        seconds,
        pem: request(name, group, host),
    };
    vec![
        asked(KUBELET, NODE, None, &["client auth", "digital signature"], None),
        asked(CLIENT, JANE, None, &["client auth"], Some(3600)),
        asked(CLIENT, JANE, None, &["client auth", "server auth"], Some(3600)),
        asked(KUBELET, JANE, None, &["client auth", "digital signature"], None),
        asked(SERVING, NODE, None, &["server auth", "digital signature"], None),
        asked(SERVING, NODE, Some("node-0.example.com"), &["server auth", "digital signature"], Some(100_000_000)),
    ]
});

fn request(name: &str, group: &str, host: Option<&str>) -> String {
    let key = rcgen::KeyPair::generate().expect("there is randomness");
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::OrganizationName, group);
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    let host = host.map(|host| rcgen::SanType::DnsName(host.try_into().expect("a name in ASCII")));
    params.subject_alt_names = host.into_iter().collect();
    params.serialize_request(&key).and_then(|request| request.pem()).expect("nothing is missing")
}
