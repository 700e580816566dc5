//! Lists from the past: the response of a lagging server.

use bytes::Bytes;
use futures::stream::{self, StreamExt as _};
use http::{Request, Response, Uri, header};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};
use steersman_apiserver::ApiServer;
use steersman_apiserver::Body as Answer;
use tower::Service as _;

/// The answer to a list, or to a watch that brings the state first, as of a revision.
pub(super) async fn answer(
    mut server: ApiServer,
    request: Request<Body>,
    revision: u64,
    is_watch: bool,
) -> Response<Answer> {
    let list = at(
        &request,
        &["limit", "continue", "watch", "sendInitialEvents", "allowWatchBookmarks"],
        &format!("resourceVersion={revision}&resourceVersionMatch=Exact"),
    );
    let Ok(listed) = server.call(list).await;
    if !is_watch || !listed.status().is_success() {
        return listed;
    }
    let Ok(bytes) = listed.into_body().collect().await;
    let list: Value = serde_json::from_slice(&bytes.to_bytes()).unwrap_or_default();
    let mut lines: Vec<Bytes> = items(&list).into_iter().map(|item| line("ADDED", &item)).collect();
    let (api_version, kind) = kind_of_items(&list);
    let end = json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {
            "resourceVersion": revision.to_string(), "annotations": {"k8s.io/initial-events-end": "true"},
        },
    });
    lines.push(line("BOOKMARK", &end));
    let watch = at(&request, &["sendInitialEvents", "resourceVersionMatch"], &format!("resourceVersion={revision}"));
    let Ok(watched) = server.call(watch).await;
    let (parts, body) = watched.into_parts();
    let behind = body.into_data_stream().map(|chunk| match chunk {
        Ok(chunk) => chunk,
        Err(never) => match never {},
    });
    Response::from_parts(parts, Answer::chunks(stream::iter(lines).chain(behind)))
}

/// The request without some parameters, and with others.
fn at(request: &Request<Body>, without: &[&str], with: &str) -> Request<Body> {
    let query = request.uri().query().unwrap_or_default();
    let is_kept = |pair: &&str| {
        let name = pair.split('=').next().unwrap_or_default();
        !without.contains(&name) && name != "resourceVersion" && name != "resourceVersionMatch"
    };
    let mut pairs: Vec<&str> = query.split('&').filter(is_kept).filter(|pair| !pair.is_empty()).collect();
    pairs.push(with);
    let uri = format!("{}?{}", request.uri().path(), pairs.join("&"));
    let mut changed = Request::new(Body::empty());
    *changed.uri_mut() = uri.parse().unwrap_or_else(|_| Uri::from_static("/"));
    if let Some(accept) = request.headers().get(header::ACCEPT) {
        // A list of metadata is another kind than the metadata of a list.
        let text = accept.to_str().unwrap_or_default();
        let text = match with.contains("Exact") {
            true => text.replace("as=PartialObjectMetadata;", "as=PartialObjectMetadataList;"),
            false => text.to_owned(),
        };
        if let Ok(accept) = text.parse() {
            changed.headers_mut().insert(header::ACCEPT, accept);
        }
    }
    changed
}

fn kind_of_items(list: &Value) -> (String, String) {
    let text = |name: &str| list[name].as_str().unwrap_or_default().to_owned();
    let kind = text("kind");
    (text("apiVersion"), kind.strip_suffix("List").unwrap_or(&kind).to_owned())
}

/// The items of a list as whole objects.
fn items(list: &Value) -> Vec<Value> {
    let (api_version, kind) = kind_of_items(list);
    let whole = |item: &Value| {
        let mut item = item.clone();
        item["apiVersion"] = api_version.clone().into();
        item["kind"] = kind.clone().into();
        item
    };
    list["items"].as_array().into_iter().flatten().map(whole).collect()
}

fn line(kind: &str, object: &Value) -> Bytes {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n").into()
}
