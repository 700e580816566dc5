//! Certificates for tests.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

/// Who vouches for certificates.
pub(crate) struct Authority {
    pub(crate) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key.
#[derive(Clone)]
pub(crate) struct Issued {
    pub(crate) certificate_pem: String,
    pub(crate) key_pem: String,
    pub(crate) der: Vec<u8>,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Result<Self, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let pem = params.self_signed(&key)?.pem();
        Ok(Self { pem, issuer: Issuer::new(params, key) })
    }

    /// For a server with names, or for a client with groups (rcgen writes one at most).
    pub(crate) fn issue(&self, common: &str, names: &[&str], groups: &[&str]) -> Result<Issued, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())?;
        params.distinguished_name.push(DnType::CommonName, common);
        for &group in groups {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &self.issuer)?;
        let der = certificate.der().to_vec();
        Ok(Issued { certificate_pem: certificate.pem(), key_pem: key.serialize_pem(), der })
    }
}
