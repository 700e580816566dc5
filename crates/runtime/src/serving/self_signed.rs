//! Self-signed certificates, as upstream's servers create them when none is configured.

use std::io::{self, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use steersman_base::Clock;

use super::ServeError;
use super::pair::PemPair;

/// Upstream's duration: a process that lives longer is restarted, or configured with files.
const VALID: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// Clocks differ.
const VALID_BEFORE: Duration = Duration::from_secs(60 * 60);

/// Returns the files of a pair in a directory.
pub(super) fn files(directory: &Path, pair: &str) -> [PathBuf; 2] {
    [directory.join(format!("{pair}.crt")), directory.join(format!("{pair}.key"))]
}

/// Creates a key, and its certificate followed by that of the authority, whose key is dropped.
pub(super) fn make(address: IpAddr, names: &[String], clock: &Clock) -> Result<PemPair, ServeError> {
    generate(address, names, clock).map_err(|error| ServeError::SelfSigned(error.to_string()))
}

fn generate(address: IpAddr, names: &[String], clock: &Clock) -> Result<PemPair, rcgen::Error> {
    let mut all = names.to_vec();
    match address.is_unspecified() {
        true => all.push("localhost".to_owned()),
        false => all.push(address.to_string()),
    }
    all.sort();
    all.dedup();
    let host = names.first().map_or("localhost", String::as_str);
    let seconds = clock.now().unix();

    let authority_key = p256()?;
    let mut authority = params(Vec::new(), &format!("{host}-ca@{seconds}"), clock)?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let authority_certificate = authority.self_signed(&authority_key)?;
    let issuer = Issuer::new(authority, authority_key);

    let key = p256()?;
    let mut server = params(all, &format!("{host}@{seconds}"), clock)?;
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let certificate = server.signed_by(&key, &issuer)?;
    let certificate = format!("{}{}", certificate.pem(), authority_certificate.pem());
    Ok(PemPair { certificate, key: key.serialize_pem() })
}

fn p256() -> Result<KeyPair, rcgen::Error> {
    KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)
}

fn params(names: Vec<String>, common: &str, clock: &Clock) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    let now = Duration::from_secs(u64::try_from(clock.now().unix()).unwrap_or(0));
    let from = rcgen::date_time_ymd(1970, 1, 1) + now.saturating_sub(VALID_BEFORE);
    params.not_before = from;
    params.not_after = from + VALID;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common);
    Ok(params)
}

/// Writes the pair; only its owner can read the key.
pub(super) fn write(pair: &PemPair, [certificate, key]: &[PathBuf; 2]) -> Result<(), ServeError> {
    let failed = |file: &Path| {
        let file = file.to_owned();
        move |cause| ServeError::Write { file, cause }
    };
    if let Some(directory) = certificate.parent() {
        std::fs::create_dir_all(directory).map_err(failed(directory))?;
    }
    put(key, &pair.key, 0o600).map_err(failed(key))?;
    put(certificate, &pair.certificate, 0o644).map_err(failed(certificate))
}

/// Writes the whole file atomically: others may read it meanwhile.
fn put(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let fresh = path.with_file_name(name);
    let _ = std::fs::remove_file(&fresh);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    let mut file = options.open(&fresh)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| std::fs::rename(&fresh, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&fresh);
    }
    written
}
