//! The looker in a test cluster, and the web server without a socket.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use example_manual_trigger::{add_looker, respond};
use http::Request;
use steersman::testing::{Failure, TestCluster};

#[tokio::test(start_paused = true)]
async fn a_request_makes_the_controller_look_now() -> Result<(), Failure> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sender = Arc::new(OnceLock::new());
    let diary = Arc::clone(&seen);
    let made = Arc::clone(&sender);
    let cluster = TestCluster::builder()
        .with(move |manager| {
            let diary = Arc::clone(&diary);
            let (_, sender) = add_looker(manager, move |key| diary.lock().unwrap().push(key.to_string()));
            let _ = made.set(sender);
        })
        .start()
        .await?;
    cluster.settle().await?;
    seen.lock().unwrap().clear();

    let sender = sender.get().unwrap();
    let ask = |method: &str, path: &str| {
        let request = Request::builder().method(method).uri(path).body(Bytes::new()).unwrap();
        respond(sender, &request).status().as_u16()
    };
    assert_eq!(ask("POST", "/trigger/shop/cake"), 202);
    assert_eq!(ask("GET", "/trigger/shop/cake"), 405);
    assert_eq!(ask("POST", "/elsewhere"), 404);
    cluster.advance(Duration::from_secs(1)).await;
    assert_eq!(*seen.lock().unwrap(), ["shop/cake"]);

    // The controller itself can be asked, too.
    let looker = cluster.manager().inspection().controllers()[0].clone();
    looker.trigger(steersman::base::ObjectKey::new("shop", "pie"));
    cluster.advance(Duration::from_secs(1)).await;
    assert_eq!(*seen.lock().unwrap(), ["shop/cake", "shop/pie"]);
    cluster.stop().await
}
