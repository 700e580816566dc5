//! A controller that is asked from outside: `POST /trigger/<namespace>/<name>` on a small web server makes it look at a
//! ConfigMap now, whatever the cluster says.
//!
//! The server is a *runnable* of the manager: it starts before the caches and ends after the controllers, and if it fails
//! the manager stops with its error. It feeds *generic events* into the controller's queue, where they are folded with all
//! others: asking a hundred times costs one pass.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode};
use k8s_openapi::api::core::v1::ConfigMap;
use steersman::base::{Meta, ObjectKey};
use steersman::runtime::manager::{Group, runnable};
use steersman::runtime::serving::{Request, Response, Serving};
use steersman::runtime::source::{self, Sender};
use steersman::runtime::{Action, Context, Controller, Error, Manager, Reconciler, Runnable};

/// The controller: it sends each key that it reconciled to a channel.
pub struct Looker<F>(F);

impl<F: Fn(&ObjectKey) + Send + Sync + 'static> Reconciler for Looker<F> {
    async fn reconcile(&self, _: &Context, key: &ObjectKey) -> Result<Action, Error> {
        (self.0)(key);
        Ok(Action::Done)
    }
}

/// Adds the controller to a manager; the sender puts events into its queue.
pub fn add_looker(
    manager: &Manager,
    looked_at: impl Fn(&ObjectKey) + Send + Sync + 'static,
) -> (Controller, Sender<Meta>) {
    let (sender, events) = source::channel(|sent: &Meta| sent.key());
    let builder = manager.controller::<ConfigMap>("looker").source(events);
    (builder.reconcile_with(Looker(looked_at)), sender)
}

/// The web server, as a runnable.
pub fn web_server(serving: Serving, sender: Sender<Meta>) -> impl Runnable {
    runnable("trigger server", Group::Servers, move |stop| async move {
        let respond = move |request: Request| std::future::ready(respond(&sender, &request));
        serving.run(respond, stop).await;
        Ok(())
    })
}

/// Answers one request.
#[must_use]
pub fn respond(sender: &Sender<Meta>, request: &Request) -> Response {
    let (code, text) = match (request.method(), key(request.uri().path())) {
        (&Method::POST, Some(key)) => {
            let meta = Meta { namespace: key.namespace.clone(), name: key.name.clone(), ..Meta::default() };
            match sender.try_send(Arc::new(meta)) {
                Ok(()) => (StatusCode::ACCEPTED, format!("will look at {key}\n")),
                Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")),
            }
        }
        (_, Some(_)) => (StatusCode::METHOD_NOT_ALLOWED, "POST, please\n".to_owned()),
        (_, None) => (StatusCode::NOT_FOUND, "POST /trigger/<namespace>/<name>\n".to_owned()),
    };
    let mut response = Response::new(Bytes::from(text));
    *response.status_mut() = code;
    response
}

fn key(path: &str) -> Option<ObjectKey> {
    let (namespace, name) = path.strip_prefix("/trigger/")?.split_once('/')?;
    (!namespace.is_empty() && !name.is_empty()).then(|| ObjectKey::new(namespace, name))
}
