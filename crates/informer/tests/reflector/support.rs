//! A scripted API server that speaks real HTTP/1.1 and HTTP/2 over pipes in memory, and what tests say about it.
//!
//! Everything runs under the paused clock: hours of watching take milliseconds, and nothing depends on how fast a machine is.

#![allow(unreachable_pub, clippy::unwrap_used)]

pub mod objects;
pub mod protobuf;
pub mod recorder;
pub mod server;

use std::time::Duration;

use steersman_base::Resource;
use steersman_base::watch;
use steersman_informer::__internal::reflector::{Reflector, ReflectorOptions, ReflectorState};
use steersman_informer::Target;
use steersman_model::{PodView, View};
use tokio_util::sync::CancellationToken;

use recorder::Recorder;
use server::{Answer, Http, Server};

/// A reflector of pods at work against a scripted server.
pub struct Scene<V: View = PodView> {
    pub server: Server,
    pub recorder: Recorder<V>,
    pub state: watch::Receiver<ReflectorState>,
    stop: CancellationToken,
}

/// The same chance in every run.
pub const SEED: u64 = 7;

pub fn pods() -> Target {
    Target::all(Resource::namespaced("", "v1", "pods", "Pod"))
}

pub fn options() -> ReflectorOptions {
    let mut options = ReflectorOptions::default();
    options.seed = Some(SEED);
    options
}

pub const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Lets virtual time pass, timer by timer.
pub async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Starts a reflector against answers that are given in turn.
pub fn play(http: Http, answers: impl IntoIterator<Item = Answer>) -> Scene {
    Scene::start(Server::in_turn(http, answers), options())
}

impl<V: View> Scene<V> {
    pub fn start(server: Server, options: ReflectorOptions) -> Self {
        let recorder = Recorder::default();
        let stop = CancellationToken::new();
        let reflector = Reflector::<V>::new(server.client(), pods(), options);
        let state = reflector.state();
        tokio::spawn(reflector.run(recorder.clone(), stop.clone()));
        Self { server, recorder, state, stop }
    }

    /// What the sink received, in order.
    pub fn reported(&self) -> Vec<String> {
        self.recorder.reported()
    }

    /// What the store would hold now.
    pub fn holds(&self) -> Vec<String> {
        self.recorder.holds()
    }

    /// What the server was asked, in short.
    pub fn asked(&self) -> Vec<String> {
        self.server.asked()
    }

    pub fn problem(&self) -> Option<String> {
        self.state.borrow().problem.as_ref().map(|problem| format!("{:?}: {}", problem.kind, problem.message))
    }

    pub fn stop(&self) {
        self.stop.cancel();
    }
}

impl<V: View> Drop for Scene<V> {
    fn drop(&mut self) {
        self.stop.cancel();
        self.server.shut_down();
    }
}
