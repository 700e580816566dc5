//! What kube-apiserver answered, for the tests of the pure parts.

use serde_json::Value;

/// A recorded request and its answer.
pub(crate) struct Recorded {
    pub(crate) id: String,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) content_type: String,
    /// The body as it was sent.
    pub(crate) body: Vec<u8>,
    pub(crate) code: u64,
    pub(crate) answer: Value,
}

/// All of them, in the order in which they were made.
pub(crate) fn all() -> Vec<Recorded> {
    include_str!("../tests/data/answers.jsonl")
        .lines()
        .map(|line| {
            let row: Value = serde_json::from_str(line).expect("a line is JSON");
            let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
            Recorded {
                id: text("id"),
                method: text("method"),
                path: text("path"),
                content_type: text("type"),
                body: match (row.get("body"), row["text"].as_str()) {
                    (Some(body), _) => body.to_string().into_bytes(),
                    (None, text) => text.unwrap_or_default().as_bytes().to_vec(),
                },
                code: row["answer"]["code"].as_u64().expect("a code"),
                answer: row["answer"]["body"].clone(),
            }
        })
        .collect()
}

/// The one of this id.
pub(crate) fn get(id: &str) -> Recorded {
    all().into_iter().find(|recorded| recorded.id == id).unwrap_or_else(|| panic!("no recorded request {id:?}"))
}

/// Group, version and kind of an object.
pub(crate) fn kind_of(object: &Value) -> (String, String, String) {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    (group.to_owned(), version.to_owned(), object["kind"].as_str().unwrap_or_default().to_owned())
}

/// Group, version and kind of a row of test data: `apps/v1/Deployment`.
pub(crate) fn kind_in(row: &Value) -> [&str; 3] {
    let mut parts = row["kind"].as_str().expect("a kind").split('/');
    std::array::from_fn(|_| parts.next().expect("group/version/kind"))
}
