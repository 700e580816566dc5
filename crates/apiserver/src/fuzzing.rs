//! Entries for fuzz targets: readers of bytes from outside to which no request of a test leads. Only `cargo xtask fuzz` compiles them.

use crate::auth::certificate;
pub use crate::registry::admission::webhook::fuzz_answer as admission_answer;
pub use crate::registry::conversion::fuzz_answer as conversion_answer;

/// Reads the user from the certificate of a client.
pub fn client_certificate(der: &[u8]) {
    if let Some(user) = certificate::user(der) {
        assert!(!user.name.is_empty(), "a user has a name");
    }
}
