//! The names of Go's flags for versions, cipher suites and key exchanges of TLS.
//!
//! Names that Go knows and rustls does not support, because they are broken or old, are reported to the caller and left
//! out.

use std::str::FromStr;

use rustls::SupportedCipherSuite;
use rustls::crypto::{SupportedKxGroup, aws_lc_rs};

/// The minimum version of TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TlsVersion {
    /// `VersionTLS12`. `VersionTLS10` and `VersionTLS11` are read as this: nothing older is supported.
    #[default]
    Tls12,
    /// `VersionTLS13`.
    Tls13,
}

/// The cipher suites of TLS 1.2; those of 1.3 are all supported, as in Go.
#[derive(Clone, Debug)]
pub struct CipherSuites {
    suites: Vec<SupportedCipherSuite>,
    left_out: Vec<String>,
}

/// The key exchanges.
#[derive(Clone, Debug)]
pub struct KeyExchanges {
    groups: Vec<&'static dyn SupportedKxGroup>,
    left_out: Vec<i32>,
}

/// A name that Go's TLS does not know either.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnknownTlsName {
    /// A version.
    #[error("{0:?} is no TLS version; say VersionTLS12 or VersionTLS13")]
    Version(String),
    /// A cipher suite.
    #[error("{name:?} is no cipher suite; say one of {}", spoken_suites())]
    CipherSuite {
        /// The given name.
        name: String,
    },
    /// A key exchange.
    #[error("{0} is no key exchange; say one of 23 (P-256), 24 (P-384), 29 (X25519), 4588 (X25519MLKEM768)")]
    KeyExchange(i32),
    /// A repeated key exchange.
    #[error("key exchange {0} is named twice")]
    Twice(i32),
}

/// Go's name of each suite, and rustls's suite where it has one.
const SUITES: [(&str, Option<SupportedCipherSuite>); 27] = {
    use aws_lc_rs::cipher_suite as has;
    [
        ("TLS_AES_128_GCM_SHA256", Some(has::TLS13_AES_128_GCM_SHA256)),
        ("TLS_AES_256_GCM_SHA384", Some(has::TLS13_AES_256_GCM_SHA384)),
        ("TLS_CHACHA20_POLY1305_SHA256", Some(has::TLS13_CHACHA20_POLY1305_SHA256)),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", Some(has::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256)),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", Some(has::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384)),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", Some(has::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256)),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", Some(has::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256)),
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", Some(has::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256)),
        ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", Some(has::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384)),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", Some(has::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256)),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", Some(has::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256)),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", None),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256", None),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", None),
        ("TLS_ECDHE_ECDSA_WITH_RC4_128_SHA", None),
        ("TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA", None),
        ("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", None),
        ("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", None),
        ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", None),
        ("TLS_ECDHE_RSA_WITH_RC4_128_SHA", None),
        ("TLS_RSA_WITH_3DES_EDE_CBC_SHA", None),
        ("TLS_RSA_WITH_AES_128_CBC_SHA", None),
        ("TLS_RSA_WITH_AES_128_CBC_SHA256", None),
        ("TLS_RSA_WITH_AES_128_GCM_SHA256", None),
        ("TLS_RSA_WITH_AES_256_CBC_SHA", None),
        ("TLS_RSA_WITH_AES_256_GCM_SHA384", None),
        ("TLS_RSA_WITH_RC4_128_SHA", None),
    ]
};

/// P-521, which Go has and our provider does not support for key exchange.
const P521: i32 = 25;

// === impl TlsVersion ===

impl FromStr for TlsVersion {
    type Err = UnknownTlsName;
    fn from_str(name: &str) -> Result<Self, UnknownTlsName> {
        match name {
            "" | "VersionTLS10" | "VersionTLS11" | "VersionTLS12" => Ok(Self::Tls12),
            "VersionTLS13" => Ok(Self::Tls13),
            other => Err(UnknownTlsName::Version(other.to_owned())),
        }
    }
}

impl TlsVersion {
    /// Returns this version and the newer ones.
    pub(super) fn and_newer(self) -> &'static [&'static rustls::SupportedProtocolVersion] {
        const BOTH: &[&rustls::SupportedProtocolVersion] = &[&rustls::version::TLS13, &rustls::version::TLS12];
        match self {
            Self::Tls12 => BOTH,
            Self::Tls13 => &BOTH[..1],
        }
    }
}

// === impl CipherSuites ===

impl CipherSuites {
    /// Returns the suites of these names, in this order.
    ///
    /// # Errors
    /// Go knows no suite of that name.
    pub fn named<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<Self, UnknownTlsName> {
        let mut found = Self { suites: Vec::new(), left_out: Vec::new() };
        for name in names {
            match SUITES.iter().find(|(known, _)| *known == name) {
                Some((_, Some(suite))) => found.suites.push(*suite),
                Some((_, None)) => found.left_out.push(name.to_owned()),
                None => return Err(UnknownTlsName::CipherSuite { name: name.to_owned() }),
            }
        }
        Ok(found)
    }

    /// Returns the suites that Go supports and this server does not.
    #[doc(hidden)]
    #[must_use]
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Returns all suites of TLS 1.3, and the named ones of TLS 1.2.
    pub(super) fn spoken(&self) -> Vec<SupportedCipherSuite> {
        let newest = aws_lc_rs::ALL_CIPHER_SUITES.iter().filter(|suite| suite.tls13().is_some());
        let chosen = self.suites.iter().filter(|suite| suite.tls13().is_none());
        newest.chain(chosen).copied().collect()
    }
}

fn spoken_suites() -> String {
    let spoken = SUITES.iter().filter(|(_, suite)| suite.is_some());
    spoken.map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

// === impl KeyExchanges ===

impl KeyExchanges {
    /// Returns the key exchanges with these numbers of IANA, as in Go's `--tls-curve-preferences`.
    ///
    /// # Errors
    /// Go knows no such key exchange, or one is repeated.
    pub fn numbered(numbers: &[i32]) -> Result<Self, UnknownTlsName> {
        let mut found = Self { groups: Vec::new(), left_out: Vec::new() };
        for (index, &number) in numbers.iter().enumerate() {
            if numbers[..index].contains(&number) {
                return Err(UnknownTlsName::Twice(number));
            }
            let group = aws_lc_rs::ALL_KX_GROUPS.iter().find(|group| i32::from(u16::from(group.name())) == number);
            match group {
                Some(group) => found.groups.push(*group),
                None if number == P521 => found.left_out.push(number),
                None => return Err(UnknownTlsName::KeyExchange(number)),
            }
        }
        Ok(found)
    }

    /// Returns the key exchanges that Go supports and this server does not.
    #[doc(hidden)]
    #[must_use]
    pub fn left_out(&self) -> &[i32] {
        &self.left_out
    }

    pub(super) fn spoken(&self) -> Vec<&'static dyn SupportedKxGroup> {
        self.groups.clone()
    }
}
