//! The files of `install/`: a kube-apiserver accepts every manifest, and the program starts with the flags of each.

use std::path::{Path, PathBuf};

use http::Method;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use serde_json::Value;
use steersman_testing::rig::{Rig, Setup};
use steersman_testing::{Failure, expect, expect_eq};

use crate::everything::{errors, kubectl, start, start_manager, until_answered};
use crate::manager::{ask, client_of, until, wanted};

const STATIC_POD: &str = "kubeadm/kube-controller-manager.yaml";
const PATCH: &str = "kubeadm/patches/kube-controller-manager+strategic.yaml";
const SECOND: &str = "second-manager.yaml";
const UNIT: &str = "steersman-controller-manager.service";
/// Account, lease and Deployment of the second manager.
const SECOND_NAME: &str = "steersman-controller-manager";

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../install").join(name)
}

/// What the server makes of a manifest, in a dry run.
fn accepted(rig: &Rig, manifest: &Path) -> Result<Vec<Value>, Failure> {
    let path = manifest.display().to_string();
    let answer = kubectl(rig, &["create", "--dry-run=server", "--validate=strict", "-o", "json", "-f", &path])?;
    let documents: Vec<Value> = serde_json::Deserializer::from_str(&answer).into_iter().collect::<Result<_, _>>()?;
    let items = |document: Value| match document["items"].as_array() {
        Some(items) => items.clone(),
        None => vec![document],
    };
    Ok(documents.into_iter().flat_map(items).collect())
}

/// The flags in the command of a container, and the program's name.
fn command(container: &Value) -> (String, Vec<String>) {
    let words = container["command"].as_array().into_iter().flatten();
    let words: Vec<String> = words.filter_map(|word| Some(word.as_str()?.to_owned())).collect();
    let first = words.iter().position(|word| word.starts_with("--")).unwrap_or(words.len());
    (words[..first].join(" "), words[first..].to_vec())
}

/// The flags with the files of a rig instead of kubeadm's, and without the port's address.
fn on_the_rig(rig: &Rig, flags: Vec<String>) -> Vec<String> {
    let replaced = flags.into_iter().map(|flag| {
        let Some((name, path)) = flag.split_once("=/etc/kubernetes/") else { return flag };
        let file = match path {
            "controller-manager.conf" => "controller-manager.kubeconfig",
            path => path.strip_prefix("pki/").unwrap_or(path),
        };
        format!("{name}={}", rig.file(file).display())
    });
    replaced.collect()
}

/// Starts the program with these flags until it is ready and leads; nothing is refused to it meanwhile.
async fn starts(rig: &Rig, what: &str, flags: Vec<String>, lease: &str) -> Result<(), Failure> {
    let program = Path::new(env!("CARGO_BIN_EXE_steersman"));
    let (process, port) = start_manager(rig, what, program, &["controller-manager"], flags).await?;
    until_answered(&process, &port, "/readyz").await?;
    let admin = client_of(rig.kubeconfig()).await?;
    until(&format!("{what} leads"), || async { Ok(wanted(holder(&admin, lease).await?, |holder| !holder.is_empty())) })
        .await?;
    // Who asks is known from the certificate authority of the API server, or from the flag.
    let (status, _) = ask(&port, Method::GET, "/metrics", "").await?;
    expect_eq(&format!("{what}: the administrator reads metrics"), &status, &200)?;
    expect_eq(&format!("{what}: errors"), &errors(&process.said()?), &Vec::new())?;
    expect_eq(&format!("{what}: exit code"), &process.terminate().await?, &0)
}

async fn holder(admin: &Client, lease: &str) -> Result<String, Failure> {
    let leases: Api<Lease> = Api::namespaced(admin.clone(), "kube-system");
    Ok(leases.get_opt(lease).await?.and_then(|lease| lease.spec?.holder_identity).unwrap_or_default())
}

/// A kubeconfig with the token of the second manager's account, as its pod would have it.
fn kubeconfig_of_second(rig: &Rig) -> Result<PathBuf, Failure> {
    let token = kubectl(rig, &["create", "token", SECOND_NAME, "--namespace=kube-system"])?;
    let admin = std::fs::read_to_string(rig.kubeconfig())?;
    let line = |line: &str| match line.trim_start() {
        text if text.starts_with("client-certificate-data:") => Some(format!("    token: {}", token.trim())),
        text if text.starts_with("client-key-data:") => None,
        _ => Some(line.to_owned()),
    };
    let lines: Vec<String> = admin.lines().filter_map(line).collect();
    let file = rig.scratch().join("second.kubeconfig");
    std::fs::write(&file, lines.join("\n"))?;
    Ok(file)
}

#[tokio::test]
async fn every_file_of_the_installation_is_accepted_and_its_flags_start() -> Result<(), Failure> {
    let rig = start("installation", Setup::DEFAULT).await?;

    let pods = accepted(&rig, &file(STATIC_POD))?;
    let (program, flags) = command(&pods[0]["spec"]["containers"][0]);
    expect_eq("the program", &program.as_str(), &"steersman controller-manager")?;
    starts(&rig, "static-pod", on_the_rig(&rig, flags), "kube-controller-manager").await?;

    // As kubeadm applies it to its own manifest, whose command stays.
    let own = rig.scratch().join("kubeadm.yaml");
    let text = std::fs::read_to_string(file(STATIC_POD))?;
    let text = text.replace("- steersman\n    - controller-manager\n", "- kube-controller-manager\n");
    std::fs::write(&own, text.replace("image: steersman:", "image: another:"))?;
    let own = own.display().to_string();
    let patch = format!("--patch-file={}", file(PATCH).display());
    let patched = kubectl(&rig, &["patch", "--local", "--type=strategic", &patch, "-o", "json", "-f", &own])?;
    let patched_file = rig.scratch().join("patched.json");
    std::fs::write(&patched_file, &patched)?;
    let pods = accepted(&rig, &patched_file)?;
    let container = &pods[0]["spec"]["containers"][0];
    let image = format!("steersman:{}", env!("CARGO_PKG_VERSION"));
    expect_eq("the image of the patch", &container["image"].as_str(), &Some(image.as_str()))?;
    expect_eq("its program", &command(container).0.as_str(), &"kube-controller-manager")?;

    let unit = std::fs::read_to_string(file(UNIT))?;
    let joined = unit.replace("\\\n", " ");
    let line = joined.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap_or_default();
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    expect_eq("the program", &words[..2].join(" ").as_str(), &"/usr/local/bin/steersman controller-manager")?;
    starts(&rig, "unit", on_the_rig(&rig, words[2..].to_vec()), "kube-controller-manager").await?;

    let objects = accepted(&rig, &file(SECOND))?;
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment").cloned().unwrap_or_default();
    kubectl(&rig, &["create", "-f", &file(SECOND).display().to_string()])?;
    let kubeconfig = kubeconfig_of_second(&rig)?;
    let (program, mut flags) = command(&deployment["spec"]["template"]["spec"]["containers"][0]);
    expect_eq("the program", &program.as_str(), &"steersman controller-manager")?;
    // In a pod these come from its account.
    for flag in ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"] {
        flags.push(format!("--{flag}={}", kubeconfig.display()));
    }
    starts(&rig, "second-manager", flags, SECOND_NAME).await
}

#[test]
fn versions_and_names_of_the_installation_agree() -> Result<(), Failure> {
    let image = format!("steersman:{}", env!("CARGO_PKG_VERSION"));
    for name in ["Dockerfile", STATIC_POD, PATCH, SECOND] {
        let text = std::fs::read_to_string(file(name))?;
        expect(text.contains(&image), &format!("{name} has the image {image}"), &text)?;
    }
    let dockerfile = std::fs::read_to_string(file("Dockerfile"))?;
    let toolchain = format!("FROM rust:{}-", env!("CARGO_PKG_RUST_VERSION"));
    expect(dockerfile.contains(&toolchain), "the toolchain is the oldest that builds", &dockerfile)?;
    // The patch leaves kubeadm's command alone.
    expect(dockerfile.contains("/usr/local/bin/kube-controller-manager"), "the image has that name", &dockerfile)
}
