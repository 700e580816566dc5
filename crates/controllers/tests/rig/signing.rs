//! Certificates that kube-apiserver itself checks.

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use steersman_testing::{Failure, expect_eq};

use crate::scenarios::certificates::{CLIENT, KUBELET, decide, named, request_for, requests, signing, until_issued};

/// The key of the authority is the server's own here: it accepts what the controller has signed, as that user.
#[tokio::test]
async fn the_server_knows_who_has_a_signed_certificate() -> Result<(), Failure> {
    let cluster = signing().start_on_rig().await?;
    for (name, signer, user, group) in
        [("ann", CLIENT, "ann", "devs"), ("node", KUBELET, "system:node:test", "system:nodes")]
    {
        let name = named(&cluster, name);
        // Every kind of key that people use.
        for (number, algorithm) in [
            &rcgen::PKCS_ECDSA_P256_SHA256,
            &rcgen::PKCS_ECDSA_P384_SHA384,
            &rcgen::PKCS_ED25519,
            &rcgen::PKCS_RSA_SHA256,
        ]
        .into_iter()
        .enumerate()
        {
            let name = format!("{name}-{number}");
            let key = rcgen::KeyPair::generate_for(algorithm)?;
            let usages = ["client auth", "digital signature"];
            let made = request_for(&key, &name, signer, user, group, &usages);
            requests(&cluster).create(&PostParams::default(), &made).await?;
            decide(&cluster, &name, "Approved").await?;
            let issued = until_issued(&cluster, &name).await?;
            let certificate = issued.status.and_then(|status| status.certificate).unwrap_or_default();
            let who = whoami(certificate.0, &key.serialize_pem()).await?;
            let groups = [group, "system:authenticated"].map(str::to_owned).to_vec();
            expect_eq("user and groups", &who, &(Some(user.to_owned()), Some(groups)))?;
        }
    }
    cluster.stop().await
}

/// Who the rig's server takes the owner of a certificate for.
async fn whoami(certificate: Vec<u8>, key: &str) -> Result<(Option<String>, Option<Vec<String>>), Failure> {
    let file = std::env::var("STEERSMAN_RIG_KUBECONFIG")?;
    let mut kubeconfig = Kubeconfig::read_from(file)?;
    for user in &mut kubeconfig.auth_infos {
        user.auth_info = Some(serde_json::from_value(serde_json::json!({
            "client-certificate-data": base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &certificate),
            "client-key-data": base64::Engine::encode(&base64::engine::general_purpose::STANDARD, key),
        }))?);
    }
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let reviews = Api::<SelfSubjectReview>::all(Client::try_from(config)?);
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await?;
    let user = review.status.and_then(|status| status.user_info).unwrap_or_default();
    Ok((user.username, user.groups))
}
