//! Real kubectl against `steersman up`: certificates from the request to the login.

use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};
use steersman_testing::Failure;

use crate::up::Up;

const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const KUBELET: &str = "kubernetes.io/kube-apiserver-client-kubelet";

fn request(key: &KeyPair, name: &str, signer: &str, user: &str, group: &str) -> Result<String, Failure> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, group);
    params.distinguished_name.push(DnType::CommonName, user);
    let pem = params.serialize_request(key)?.pem()?;
    let object = json!({
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": { "name": name },
        "spec": {
            "request": STANDARD.encode(pem), "signerName": signer, "expirationSeconds": 3600,
            "usages": ["client auth", "digital signature"],
        },
    });
    Ok(object.to_string())
}

fn condition(request: &Value) -> Option<&str> {
    request["status"]["conditions"][0]["reason"].as_str()
}

/// What openssl says of a client certificate of the cluster, where there is one: it verifies, and says what was asked for.
async fn openssl_agrees(up: &Up, certificate: &Path, authority: &Path) -> Result<(), Failure> {
    let path = "jsonpath={.clusters[0].cluster.certificate-authority-data}";
    let data = up.kubectl(&format!("config view --raw --minify -o {path}")).await?;
    std::fs::write(authority, STANDARD.decode(data)?)?;
    let mut verify = Command::new("openssl");
    verify.args(["verify", "-purpose", "sslclient", "-CAfile"]).arg(authority).arg(certificate);
    let verify = match verify.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("SKIPPED: there is no openssl here, so nobody else has read the certificate");
            return Ok(());
        }
        output => output?,
    };
    assert!(verify.status.success(), "{}{}", text(&verify.stdout), text(&verify.stderr));
    let options = ["-subject", "-nameopt", "RFC2253", "-ext", "extendedKeyUsage,basicConstraints,keyUsage", "-noout"];
    let shown = Command::new("openssl").arg("x509").arg("-in").arg(certificate).args(options).output()?;
    let shown = text(&shown.stdout);
    for want in ["subject=CN=ann,O=devs", "TLS Web Client Authentication", "CA:FALSE", "Digital Signature\n"] {
        assert!(shown.contains(want), "{want} is not in: {shown}");
    }
    assert!(!shown.contains("TLS Web Server Authentication"), "{shown}");
    Ok(())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn an_approved_certificate_logs_its_owner_in() -> Result<(), Failure> {
    let up = Up::start(&["--nodes=0"]).await?;
    let key = KeyPair::generate()?;
    up.kubectl_with("create -f -", &request(&key, "ann", CLIENT, "ann", "devs")?).await?;
    let shown = up.kubectl("get csr ann --no-headers").await?;
    assert!(shown.contains("admin") && shown.contains("60m") && shown.contains("Pending"), "{shown}");
    up.kubectl("certificate approve ann").await?;
    let issued = |csr: &Value| csr["status"]["certificate"].as_str().map(ToOwned::to_owned);
    let certificate = up.until("get csr ann", "a certificate", issued).await?;
    let shown = up.kubectl("get csr ann --no-headers").await?;
    assert!(shown.contains("Approved,Issued"), "{shown}");

    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = |name: &str| folder.join(format!("csr-{}-{name}", std::process::id()));
    std::fs::write(file("crt"), STANDARD.decode(certificate)?)?;
    std::fs::write(file("key"), key.serialize_pem())?;
    openssl_agrees(&up, &file("crt"), &file("ca")).await?;
    // The administrator's own credentials are not shown with them.
    let server = up.kubectl("config view --minify -o jsonpath={.clusters[0].cluster.server}").await?;
    let flags = format!(
        "--kubeconfig=/dev/null --server={server} --insecure-skip-tls-verify --client-certificate={} --client-key={}",
        file("crt").display(),
        file("key").display()
    );
    let who: Value = serde_json::from_str(&up.kubectl(&format!("auth whoami -o json {flags}")).await?)?;
    let user = &who["status"]["userInfo"];
    assert_eq!(user["username"], "ann");
    assert_eq!(user["groups"], json!(["devs", "system:authenticated"]));
    let refused = up.refused(&format!("get pods {flags}")).await?;
    assert!(refused.contains(r#"User "ann" cannot list resource "pods""#), "{refused}");
    up.kubectl("create clusterrolebinding devs --clusterrole=view --group=devs").await?;
    up.kubectl(&format!("get pods {flags}")).await?;
    let _ = std::fs::remove_file(file("crt"));
    let _ = std::fs::remove_file(file("ca"));
    let _ = std::fs::remove_file(file("key"));
    up.down().await
}

/// A stranger may ask for the certificate of a node, and does not get it; whoever has the right does.
#[tokio::test]
async fn only_users_with_the_right_get_certificates_of_nodes() -> Result<(), Failure> {
    let up = Up::start(&["--nodes=0"]).await?;
    up.kubectl("create clusterrole ask --verb=create,get --resource=certificatesigningrequests").await?;
    up.kubectl("create clusterrolebinding ask --clusterrole=ask --user=stranger --user=joiner").await?;
    let bind = "create clusterrolebinding join --user=joiner --clusterrole=\
                system:certificates.k8s.io:certificatesigningrequests:nodeclient";
    up.kubectl(bind).await?;
    let key = KeyPair::generate()?;
    for user in ["stranger", "joiner"] {
        let request = request(&key, user, KUBELET, "system:node:a", "system:nodes")?;
        up.kubectl_with(&format!("create -f - --as={user}"), &request).await?;
    }
    up.until("get csr joiner", "approved", |csr| (condition(csr) == Some("AutoApproved")).then_some(())).await?;
    up.until("get csr joiner", "a certificate", |csr| csr["status"]["certificate"].as_str().map(drop)).await?;
    let csr = up.json("get csr stranger").await?;
    assert_eq!((condition(&csr), csr["spec"]["username"].as_str()), (None, Some("stranger")), "{csr}");
    up.kubectl("certificate deny stranger").await?;
    let shown = up.kubectl("get csr stranger --no-headers").await?;
    assert!(shown.contains("Denied") && !shown.contains("Issued"), "{shown}");
    up.down().await
}
