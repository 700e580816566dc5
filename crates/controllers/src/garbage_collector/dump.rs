//! The graph as DOT, as upstream shows it, and as JSON. Objects without owners and dependents are left out.

use std::collections::HashSet;

use serde_json::{Value, json};
use steersman_base::meta::Owners;
use steersman_base::{OwnerRef, Uid};

use super::graph::{Graph, NodeState};
use super::identity::Identity;

/// A vertex: an object, or a referenced object that is not in the graph.
struct Vertex {
    node: NodeState,
    is_missing: bool,
}

/// A snapshot of the graph: vertices and edges in order.
pub(crate) struct Picture {
    vertices: Vec<Vertex>,
    edges: Vec<(Uid, Uid)>,
}

// === impl Picture ===

impl Picture {
    /// Takes a snapshot of the whole graph, or of what is connected to the uids in `around`, if there are any.
    pub(crate) fn of(graph: &Graph, around: &[Uid]) -> Self {
        let near = (!around.is_empty()).then(|| graph.around(around));
        let is_near =
            |(node, _): &(NodeState, &Owners)| near.as_ref().is_none_or(|near| near.contains(&node.identity.uid));
        let shown: Vec<_> = graph.related().filter(is_near).collect();
        let mut known: HashSet<Uid> = shown.iter().map(|(node, _)| node.identity.uid.clone()).collect();
        let mut vertices = Vec::new();
        let mut edges = Vec::new();
        for (node, owners) in shown {
            for owner in owners.iter() {
                edges.push((node.identity.uid.clone(), owner.uid.clone()));
                if known.insert(owner.uid.clone()) {
                    vertices.push(Vertex::missing(owner));
                }
            }
            vertices.push(Vertex { node, is_missing: false });
        }
        vertices.sort_by_cached_key(|vertex| vertex.node.identity.uid.to_string());
        edges.sort_by_cached_key(|(from, to)| (from.to_string(), to.to_string()));
        edges.dedup();
        Self { vertices, edges }
    }

    /// Formats the graph for Graphviz.
    pub(crate) fn dot(&self) -> String {
        let Self { vertices, edges } = self;
        let mut text = "strict digraph full {\n".to_owned();
        if !vertices.is_empty() {
            text += "  // Node definitions.\n";
        }
        for vertex in vertices {
            text += &format!("  {} [\n", quoted(&vertex.node.identity.uid.to_string()));
            for (name, value) in vertex.attributes() {
                text += &format!("    {name}={}\n", quoted(&value));
            }
            text += "  ];\n";
        }
        if !edges.is_empty() {
            text += "  // Edge definitions.\n";
        }
        for (from, to) in edges {
            text += &format!("  {} -> {};\n", quoted(&from.to_string()), quoted(&to.to_string()));
        }
        text + "}\n"
    }

    /// Formats the graph as JSON.
    pub(crate) fn json(&self) -> Value {
        let vertex = |vertex: &Vertex| {
            let NodeState { identity, is_virtual, is_being_deleted, is_deleting_dependents } = &vertex.node;
            json!({
                "uid": identity.uid, "apiVersion": identity.api_version, "kind": identity.kind,
                "namespace": identity.namespace, "name": identity.name,
                "virtual": is_virtual, "missing": vertex.is_missing,
                "beingDeleted": is_being_deleted, "deletingDependents": is_deleting_dependents,
            })
        };
        let edge = |(from, to): &(Uid, Uid)| json!({ "dependent": from, "owner": to });
        json!({
            "nodes": self.vertices.iter().map(vertex).collect::<Vec<_>>(),
            "edges": self.edges.iter().map(edge).collect::<Vec<_>>(),
        })
    }
}

/// Formats a DOT string, which is a Go string.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\n' => quoted.push_str("\\n"),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

// === impl Vertex ===

impl Vertex {
    fn missing(reference: &OwnerRef) -> Self {
        let identity = Identity::referred_to(reference, &"".into());
        let node = NodeState { identity, is_virtual: false, is_being_deleted: false, is_deleting_dependents: false };
        Self { node, is_missing: true }
    }

    /// Formats a vertex in upstream's order and words.
    fn attributes(&self) -> [(&'static str, String); 11] {
        let NodeState { identity, is_virtual, is_being_deleted, is_deleting_dependents } = &self.node;
        let Identity { kind, namespace, name, uid, .. } = identity;
        let group = identity.group();
        let version = identity.version();
        let gap = if group.is_empty() { "" } else { "." };
        let states = [
            ("beingDeleted", *is_being_deleted),
            ("deletingDependents", *is_deleting_dependents),
            ("virtual", *is_virtual),
            ("missingFromGraph", self.is_missing),
        ];
        let states: Vec<_> = states.iter().filter(|(_, is)| *is).map(|(state, _)| *state).collect();
        let line = if states.is_empty() { String::new() } else { format!("{}\n", states.join(",")) };
        let label = format!("uid={uid}\nnamespace={namespace}\n{kind}.{version}{gap}{group}/{name}\n{line}");
        [
            ("label", label),
            ("group", group.to_owned()),
            ("version", version.to_owned()),
            ("kind", kind.to_string()),
            ("namespace", namespace.to_string()),
            ("name", name.to_string()),
            ("uid", uid.to_string()),
            ("missing", self.is_missing.to_string()),
            ("beingDeleted", is_being_deleted.to_string()),
            ("deletingDependents", is_deleting_dependents.to_string()),
            ("virtual", is_virtual.to_string()),
        ]
    }
}
