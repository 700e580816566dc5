//! Certificates and bootstrap tokens when things go wrong, and many at once.

use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, ClusterTrustBundle, PodCertificateRequest};
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::json;
use steersman_controllers::certificatesigningrequest_signing::{Options, Pair, Signer, Source};
use steersman_runtime::__internal::health::{Ask, Reasons};
use steersman_runtime::health::Probe;
use steersman_testing::objects::{self, WorkloadBuilder as _};
use steersman_testing::{Failure, Faults, TestCluster, Verb, expect, expect_eq};
use tokio::time::Instant;

use crate::scenarios::bootstrap::{cluster_info, maps, signatures, token, tokens};
use crate::scenarios::certificates::{
    CLIENT, KUBELET, beyond, decide, request, request_for, requests, signing, until_issued,
};
use crate::scenarios::support::controllers::{self, AUTHORITY, Authority};
use crate::scenarios::support::crash::{Scene, crash_after_each_write};

const CLIENT_USAGES: &[&str] = &["client auth", "digital signature"];

async fn create(cluster: &TestCluster, request: &CertificateSigningRequest) -> Result<(), Failure> {
    requests(cluster).create(&PostParams::default(), request).await?;
    Ok(())
}

/// The requests: their conditions, and whether they are issued.
async fn world(cluster: &TestCluster) -> Result<Vec<String>, Failure> {
    let all = requests(cluster).list(&ListParams::default()).await?.items;
    let reported = all.into_iter().map(|request| {
        assert_eq!(beyond(&request, &AUTHORITY.certificate), [""; 0]);
        let status = request.status.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default().into_iter();
        let conditions: Vec<_> = conditions.map(|it| format!("{} {:?}", it.type_, it.message)).collect();
        format!("{:?}: {conditions:?}, issued: {}", request.metadata.name, status.certificate.is_some())
    });
    Ok(reported.collect())
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_any_write_leads_to_the_same_certificates() -> Result<(), Failure> {
    let story = async |scene: &Scene<'_>| {
        let cluster = scene.cluster();
        create(cluster, &request("node", KUBELET, "system:node:a", "system:nodes", CLIENT_USAGES)).await?;
        create(cluster, &request("ann", CLIENT, "ann", "devs", CLIENT_USAGES)).await?;
        create(cluster, &request("wrong", CLIENT, "ann", "devs", &["server auth"])).await?;
        decide(cluster, "ann", "Approved").await?;
        decide(cluster, "wrong", "Approved").await?;
        scene.rest().await
    };
    let both = [controllers::CSR_SIGNING_WITH_KEYS, controllers::CSR_APPROVING];
    let deaths = crash_after_each_write(TestCluster::builder, &both, story, world).await?;
    expect(deaths >= 4, "an approval, two certificates and a refusal are writes", &deaths)
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_any_write_leads_to_the_same_signatures_and_bundles() -> Result<(), Failure> {
    let story = async |scene: &Scene<'_>| {
        let cluster = scene.cluster();
        maps(cluster).create(&PostParams::default(), &cluster_info()).await?;
        tokens(cluster).create(&PostParams::default(), &token("abcdef", None)).await?;
        let ended = token("ended0", Some("2020-01-01T00:00:00Z"));
        tokens(cluster).create(&PostParams::default(), &ended).await?;
        let old: ClusterTrustBundle = serde_json::from_value(json!({
            "metadata": { "name": "kubernetes.io:kube-apiserver-serving:old" },
            "spec": { "signerName": "kubernetes.io/kube-apiserver-serving", "trustBundle": AUTHORITY.certificate },
        }))?;
        Api::all(cluster.client()).create(&PostParams::default(), &old).await?;
        scene.rest().await
    };
    let world = async |cluster: &TestCluster| {
        let bundles = Api::<ClusterTrustBundle>::all(cluster.client()).list(&ListParams::default()).await?;
        let tokens = tokens(cluster).list(&ListParams::default()).await?;
        let names = tokens.items.into_iter().filter_map(|it| it.metadata.name);
        let names = names.filter(|name| name.starts_with("bootstrap-token-"));
        let bundles = bundles.items.into_iter().filter_map(|it| it.metadata.name);
        Ok(names.chain(bundles).chain([format!("{:?}", signatures(cluster).await?)]).collect())
    };
    let all = [controllers::BOOTSTRAP_SIGNER, controllers::TOKEN_CLEANER, controllers::TRUST_BUNDLE_WITH_CERTIFICATE];
    let deaths = crash_after_each_write(TestCluster::builder, &all, story, world).await?;
    expect(deaths >= 4, "two bundles, a token and a signature are writes", &deaths)
}

#[tokio::test(start_paused = true)]
async fn a_certificate_is_signed_once_though_the_reply_is_lost_and_the_cache_lags() -> Result<(), Failure> {
    let faults = Faults::default();
    let lag = steersman_testing::Fault::Lag(Duration::from_secs(3));
    faults.on(Verb::Watch, "certificatesigningrequests").happens(lag);
    faults.on(Verb::Update, "certificatesigningrequests").nth(1).lose_reply();
    let cluster = signing().faults(&faults).start().await?;
    create(&cluster, &request("ann", CLIENT, "ann", "devs", CLIENT_USAGES)).await?;
    decide(&cluster, "ann", "Approved").await?;
    let first = until_issued(&cluster, "ann").await?;
    cluster.settle().await?;
    cluster.expect_quiet(crate::LONG).await?;
    let later = requests(&cluster).get("ann").await?;
    expect_eq("the request", &later.metadata.resource_version, &first.metadata.resource_version)?;
    cluster.stop().await
}

/// What `/readyz` says, with reasons.
pub(crate) fn readiness(cluster: &TestCluster) -> String {
    let mut ask = Ask::default();
    ask.reasons = Reasons::Shown;
    ask.verbose = true;
    cluster.manager().health().report(Probe::Readyz, &ask).text
}

fn scratch(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("signing-{name}-{}", std::process::id()))
}

#[tokio::test(start_paused = true)]
async fn a_signer_without_keys_is_not_ready_alone_and_signs_when_they_come() -> Result<(), Failure> {
    let certificate = scratch("certificate");
    let key = scratch("key");
    let mut options = Options::signed_by(&AUTHORITY.certificate, &AUTHORITY.key);
    let pair = Pair { certificate: Source::File(certificate.clone()), key: Source::File(key.clone()) };
    options.authorities.insert(Signer::KubeletClient, pair);
    let cluster = TestCluster::builder().controllers(&[controllers::CSR_SIGNING]).options(options).start().await?;
    let problem = "kubernetes.io/kube-apiserver-client-kubelet signs nothing: cannot read";
    let said = readiness(&cluster);
    expect(said.contains(problem) && said.contains("readyz check failed"), "it is not ready", &said)?;
    let health = cluster.manager().health().report(Probe::Healthz, &Ask::default());
    expect(health.passed, "it is healthy: a restart does not help", &health)?;
    create(&cluster, &request("node", KUBELET, "system:node:a", "system:nodes", CLIENT_USAGES)).await?;
    create(&cluster, &request("ann", CLIENT, "ann", "devs", CLIENT_USAGES)).await?;
    decide(&cluster, "node", "Approved").await?;
    decide(&cluster, "ann", "Approved").await?;
    until_issued(&cluster, "ann").await?;
    cluster.advance(Duration::from_secs(300)).await;
    let waiting = requests(&cluster).get("node").await?.status.unwrap_or_default();
    expect(waiting.certificate.is_none(), "it waits", &waiting)?;
    expect(!waiting.conditions.unwrap_or_default().iter().any(|it| it.type_ == "Failed"), "it has not failed", &())?;

    std::fs::write(&certificate, &AUTHORITY.certificate)?;
    std::fs::write(&key, &AUTHORITY.key)?;
    until_issued(&cluster, "node").await?;
    let said = readiness(&cluster);
    expect(said.contains("[+]certificatesigningrequest-signing-keys ok"), "it is ready", &said)?;
    std::fs::remove_file(&certificate)?;
    std::fs::remove_file(&key)?;
    cluster.stop().await
}

/// A certificate authority that ended then.
fn authority_until(year: i32) -> Result<Authority, Failure> {
    let key = rcgen::KeyPair::generate()?;
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.not_after = rcgen::date_time_ymd(year, 1, 1);
    Ok(Authority { certificate: params.self_signed(&key)?.pem(), key: key.serialize_pem() })
}

#[tokio::test(start_paused = true)]
async fn a_mismatched_or_expired_pair_stops_its_signer_alone_and_readyz_says_why() -> Result<(), Failure> {
    let expired = authority_until(2020)?;
    let text = |text: &str| Source::Text(text.into());
    for (certificate, key, problem) in [
        (&AUTHORITY.certificate, &expired.key, "cannot use the cluster's own and the cluster's own: "),
        (&expired.certificate, &expired.key, "its certificate authority has expired, at 2020-01-01T00:00:00Z"),
    ] {
        let mut options = Options::signed_by(&AUTHORITY.certificate, &AUTHORITY.key);
        let pair = Pair { certificate: text(certificate), key: text(key) };
        options.authorities.insert(Signer::KubeletClient, pair);
        let all = [controllers::CSR_SIGNING, controllers::REPLICA_SET];
        let cluster = TestCluster::builder().controllers(&all).options(options).start().await?;
        let node = request("node", KUBELET, "system:node:a", "system:nodes", CLIENT_USAGES);
        let ann = request("ann", CLIENT, "ann", "devs", CLIENT_USAGES);
        for request in [&node, &ann] {
            create(&cluster, request).await?;
            decide(&cluster, request.metadata.name.as_deref().unwrap_or_default(), "Approved").await?;
        }
        until_issued(&cluster, "ann").await?;
        let web = cluster.create(objects::replica_set("web").replicas(2)).await?;
        cluster.pods_of(&web).until_count(2).await?;
        cluster.advance(Duration::from_secs(300)).await;
        let waiting = requests(&cluster).get("node").await?.status.unwrap_or_default();
        let conditions: Vec<_> = waiting.conditions.unwrap_or_default().into_iter().map(|it| it.type_).collect();
        expect_eq("it waits", &(waiting.certificate, conditions), &(None, vec!["Approved".to_owned()]))?;
        let said = readiness(&cluster);
        let problem = format!("{KUBELET} signs nothing: {problem}");
        expect(said.contains(&problem) && said.contains("readyz check failed"), "it is not ready", &said)?;
        expect_eq("failed checks", &said.matches("[-]").count(), &1)?;
        let health = cluster.manager().health().report(Probe::Healthz, &Ask::default());
        expect(health.passed, "it is healthy: a restart does not help", &health)?;
        expect_eq("the manager", &cluster.manager_ended(), &None)?;
        cluster.stop().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn requests_of_pods_are_kept_for_a_quarter_of_an_hour() -> Result<(), Failure> {
    let cluster = TestCluster::builder().controllers(&[controllers::POD_CERTIFICATE_CLEANER]).start().await?;
    // A request that is signed with its key, and otherwise empty.
    let stub = "MH8wMwIBADAAMCowBQYDK2VwAyEAA8LN2Wdq+6TLpdw2bKN0oalAfOd5lDOkQhzUKBl/3dSgADAFBgMrZXADQQA7VXwUuAQviBTX\
                2MvbLm6UpvoLU4OaBxc1j2/RXMjAeT/xM+3zUfDMT9yYcR/huyZXhz99570Ijdy4iFKKF8kN";
    let made: PodCertificateRequest = serde_json::from_value(json!({
        "metadata": { "name": "a" },
        "spec": {
            "signerName": "example.com/a", "podName": "a", "podUID": "1", "serviceAccountName": "a",
            "serviceAccountUID": "2", "nodeName": "n", "nodeUID": "3", "stubPKCS10Request": stub,
        },
    }))?;
    cluster.create(made).await?;
    cluster.advance(Duration::from_secs(14 * 60)).await;
    cluster.settle().await?;
    expect(cluster.api::<PodCertificateRequest>().get_opt("a").await?.is_some(), "it is kept", &())?;
    cluster.advance(Duration::from_secs(7 * 60)).await;
    cluster.until_gone::<PodCertificateRequest>("a").await?;
    cluster.stop().await
}

/// In real time, so that the figure means something; nothing depends on it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_requests_are_signed_and_none_has_more_than_it_should() -> Result<(), Failure> {
    const COUNT: usize = 1000;
    let cluster = signing().start().await?;
    let key = rcgen::KeyPair::generate()?;
    for number in 0..COUNT {
        let name = format!("user-{number}");
        create(&cluster, &request_for(&key, &name, CLIENT, &name, "devs", CLIENT_USAGES)).await?;
    }
    let began = Instant::now();
    for number in 0..COUNT {
        decide(&cluster, &format!("user-{number}"), "Approved").await?;
    }
    let approved = began.elapsed();
    let issued = async || {
        let all = requests(&cluster).list(&ListParams::default()).await?.items;
        let issued = all.iter().filter(|it| it.status.as_ref().is_some_and(|status| status.certificate.is_some()));
        Ok(issued.count())
    };
    cluster.until_eq("all are issued", issued, COUNT).await?;
    eprintln!("{COUNT} requests: approved in {approved:?}, all signed after {:?}", began.elapsed());
    for request in requests(&cluster).list(&ListParams::default()).await?.items {
        assert_eq!(beyond(&request, &AUTHORITY.certificate), [""; 0]);
    }
    cluster.stop().await
}
