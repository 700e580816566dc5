//! The trusted authorities: from files, and from the cluster.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::review::{self, ReviewError};
use super::{Guard, GuardOptions, Lookup, RequestHeaders};
use crate::serving::{AuthorityError, ClientAuthority};

/// The authorities that a guard trusts.
#[derive(Clone, Debug, Default)]
pub(super) struct Authorities {
    pub(super) client_ca: Option<ClientAuthority>,
    pub(super) request_header: Option<RequestHeader>,
}

/// A front proxy.
#[derive(Clone, Debug)]
pub(super) struct RequestHeader {
    pub(super) authority: ClientAuthority,
    pub(super) headers: RequestHeaders,
}

/// An error of a guard's configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GuardError {
    /// A file that cannot be used.
    #[error("the client authority in {} cannot be used: {source}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The cause.
        source: AuthorityError,
    },
    /// The ConfigMap cannot be read.
    #[error(
        "cannot read configmap/{NAME} in {NAMESPACE}: {0}; bind the role extension-apiserver-authentication-reader \
         there, or set --authentication-tolerate-lookup-failure or --authentication-skip-lookup"
    )]
    Lookup(#[from] ReviewError),
    /// An entry of the ConfigMap cannot be used.
    #[error("{key} of configmap/{NAME} in {NAMESPACE} cannot be used: {problem}")]
    Entry {
        /// The entry.
        key: &'static str,
        /// The problem.
        problem: String,
    },
    /// An invalid path among those that are open to all.
    #[error("only trailing * allowed in {0:?}")]
    OpenPath(String),
    /// The registry has the metrics of another guard.
    #[error("the metrics registry has another guard's metrics: {0}")]
    Metrics(#[from] prometheus::Error),
}

#[derive(Deserialize)]
struct ConfigMap {
    #[serde(default)]
    data: BTreeMap<String, String>,
}

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";
const CLIENT_CA: &str = "client-ca-file";
const REQUEST_HEADER_CA: &str = "requestheader-client-ca-file";

// === impl Authorities ===

impl Authorities {
    /// Reads the files that the options name.
    pub(super) fn from_files(options: &GuardOptions) -> Result<Self, GuardError> {
        let client_ca = options.client_ca_file.as_deref().map(read).transpose()?;
        let request_header = options.request_header.as_ref().map(|proxy| {
            let authority = read(&proxy.client_ca_file)?;
            Ok::<_, GuardError>(RequestHeader { authority, headers: proxy.headers.clone() })
        });
        Ok(Self { client_ca, request_header: request_header.transpose()? })
    }

    /// Reads the entries of the ConfigMap. Missing entries leave their authority unset.
    pub(super) fn from_entries(data: &BTreeMap<String, String>) -> Result<Self, GuardError> {
        let authority = |key: &'static str| {
            let pem = data.get(key).filter(|pem| !pem.trim().is_empty());
            let read = |pem: &String| {
                ClientAuthority::from_pem(pem.as_bytes())
                    .map_err(|error| GuardError::Entry { key, problem: error.to_string() })
            };
            pem.map(read).transpose()
        };
        let list = |key: &'static str| match data.get(key).map(String::as_str) {
            None | Some("") => Ok(Vec::new()),
            Some(text) => serde_json::from_str::<Vec<String>>(text)
                .map_err(|error| GuardError::Entry { key, problem: format!("it is no list of texts: {error}") }),
        };
        let headers = RequestHeaders {
            username: list("requestheader-username-headers")?,
            uid: list("requestheader-uid-headers")?,
            group: list("requestheader-group-headers")?,
            extra_prefix: list("requestheader-extra-headers-prefix")?,
            allowed_names: list("requestheader-allowed-names")?,
        };
        let request_header = authority(REQUEST_HEADER_CA)?.map(|authority| RequestHeader { authority, headers });
        Ok(Self { client_ca: authority(CLIENT_CA)?, request_header })
    }
}

impl Guard {
    /// Reads files and ConfigMap again. A failure leaves the known authorities in place.
    pub(super) async fn refresh(&self) -> Result<(), GuardError> {
        let options = &self.0.options;
        let files = Authorities::from_files(options)?;
        let complete = files.client_ca.is_some() && files.request_header.is_some();
        let looked_up = match &options.authentication {
            Some(client) if options.lookup != Lookup::Skipped && !complete => {
                let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{NAME}");
                let entries: ConfigMap = review::get(client, &path).await?;
                Authorities::from_entries(&entries.data)?
            }
            _ => Authorities::default(),
        };
        let mut authorities = self.0.authorities.write();
        authorities.client_ca = files.client_ca.or(looked_up.client_ca);
        authorities.request_header = files.request_header.or(looked_up.request_header);
        Ok(())
    }
}

fn read(file: &Path) -> Result<ClientAuthority, GuardError> {
    let bundle = std::fs::read(file).map_err(AuthorityError::Read);
    let authority = bundle.and_then(|bundle| ClientAuthority::from_pem(&bundle));
    authority.map_err(|source| GuardError::File { file: file.to_owned(), source })
}
