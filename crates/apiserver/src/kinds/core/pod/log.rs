//! `pods/log`: the log of a container. Follows `pkg/registry/core/pod/strategy.go` and `…/rest/log.go`.

use steersman_base::ObjectKey;

use crate::logs::{Log, LogOptions};
use crate::registry::{Answer, Call, Content, Registry};
use crate::status::{GroupResource, Status};

/// Answers the GET of a log from the server's source of logs.
pub(crate) fn get(registry: &Registry, call: &Call) -> Result<Answer, Status> {
    let options = LogOptions::read(&call.query, &call.name, &registry.clock)?;
    let pod = registry.store.get(&call.row.collection, &call.key());
    let pod = pod.ok_or_else(|| Status::not_found(call.row.target(), &call.name))?;
    let pod = pod.parse().map_err(Status::internal)?;
    let container = options.container(&pod)?;
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    if node.is_empty() {
        return Ok(Answer::ok(Content::Nothing));
    }
    let target = GroupResource { group: "", resource: "nodes" };
    let found = registry.stored("", "v1", "nodes", &ObjectKey::cluster(node));
    let found = found.ok_or_else(|| Status::not_found(target, node))?;
    let log = match &registry.logs {
        Some(logs) => logs.open(&options.wanted(&pod, container)?),
        None if found["status"]["addresses"].as_array().is_none_or(Vec::is_empty) => {
            return Err(Status::plain("no preferred addresses found; known addresses: []"));
        }
        None => Ok(Log { lines: Vec::new(), more: None }),
    };
    let log = log.map_err(|refused| Status::bad_request(refused.to_string()))?;
    Ok(Answer::ok(Content::Log(options.text(log))))
}
