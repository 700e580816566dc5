//! The graph on the admin port.

use http::{HeaderValue, StatusCode, header};
use steersman_base::Uid;
use steersman_runtime::__internal::admin::{json, text_page};
use steersman_runtime::admin::{Admin, Call};
use steersman_runtime::serving::Response;

use super::Collector;
use crate::garbage_collector::dump::Picture;

/// Serves the graph below `/debug/controllers/<controller>/`: `graph` as DOT, at upstream's path, and `graph.json`.
/// `uid`, any number of times, selects what is connected to these objects.
pub(in crate::garbage_collector) fn serve(admin: &Admin, controller: &'static str, collector: &Collector) {
    let collector = collector.clone();
    let served = admin.handle_controller(controller, move |call| page(&collector, controller, call));
    if let Err(error) = served {
        tracing::warn!(%error, "the pages of the garbage collector's graph cannot be served");
    }
}

fn page(collector: &Collector, controller: &str, call: &Call) -> Response {
    let around: Vec<Uid> = call.query.all("uid").map(Uid::new).collect();
    let picture = || collector.graph(|graph| Picture::of(graph, &around));
    let base = format!("/debug/controllers/{controller}/");
    match call.path.strip_prefix(&base) {
        Some("graph") => {
            let mut page = text_page(StatusCode::OK, picture().dot());
            page.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/vnd.graphviz"));
            page
        }
        Some("graph.json") => json(StatusCode::OK, &picture().json()),
        _ => text_page(StatusCode::NOT_FOUND, format!("There is:\n{base}graph\n{base}graph.json\n")),
    }
}
