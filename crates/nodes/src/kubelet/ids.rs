//! Ids of containers and images: derived, and stable.

use std::fmt::Write;

use steersman_base::Uid;

/// The length of a SHA-256 in hexadecimal digits: four words of 64 bits.
const WORDS: u64 = 4;

/// Returns the id of a container: a different one after each restart.
pub(super) fn container_id(pod: &Uid, container: &str, restarts: i32) -> String {
    format!("steersman://{}", digest(&[&pod.to_string(), container, &restarts.to_string()]))
}

/// Returns the id of an image: a digest of its name, because there is no content.
pub(super) fn image_id(image: &str) -> String {
    let name = image.split('@').next().unwrap_or(image);
    // A colon after the last slash begins the tag; before it, a port.
    let slash = name.rfind('/').map_or(0, |at| at + 1);
    let name = name[slash..].find(':').map_or(name, |at| &name[..slash + at]);
    format!("{name}@sha256:{}", digest(&[image]))
}

/// Returns a hash of the texts that is stable over builds and machines.
pub(super) fn stable_hash(texts: &[&str], seed: u64) -> u64 {
    // FNV-1a, with an end mark after each text, and a final mix so that similar texts give different numbers.
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for text in texts {
        for byte in text.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}

fn digest(texts: &[&str]) -> String {
    let mut digits = String::with_capacity(64);
    for seed in 0..WORDS {
        let _ = write!(digits, "{:016x}", stable_hash(texts, seed));
    }
    digits
}
