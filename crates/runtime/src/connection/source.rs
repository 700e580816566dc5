//! Finding and reading the configuration.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use kube::Config;
use kube::config::{Cluster, KubeConfigOptions, Kubeconfig, KubeconfigError};

use super::{ConnectError, Options, Origin, address};

/// Reads an environment variable; a parameter, so that tests need not change the process.
pub(super) type Environment<'a> = &'a (dyn Fn(&str) -> Option<OsString> + Send + Sync);

const SERVICE_ACCOUNT_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// Loads the configuration, and returns its source.
pub(super) async fn load(options: &Options, environment: Environment<'_>) -> Result<(Config, Origin), ConnectError> {
    if let Some(path) = &options.kubeconfig {
        return from_files(std::slice::from_ref(path), options).await;
    }
    // As in client-go: a given server without a kubeconfig means no credentials, and not those of some file.
    if let Some(server) = options.server.as_deref().filter(|_| options.context.is_none()) {
        return Ok((Config::new(address(server)?), Origin::Named));
    }
    if options.context.is_none()
        && let Some(found) = in_cluster(environment)?
    {
        return Ok(found);
    }
    let set = |name: &str| environment(name).filter(|value| !value.is_empty());
    let files: Vec<PathBuf> = match set("KUBECONFIG") {
        Some(list) => std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect(),
        None => set("HOME").map(|home| Path::new(&home).join(".kube/config")).into_iter().collect(),
    };
    // As in client-go: of several files, missing ones are ignored.
    let there: Vec<PathBuf> = files.iter().filter(|path| path.exists()).cloned().collect();
    if there.is_empty() {
        let sought =
            if files.is_empty() { "anywhere: neither KUBECONFIG nor HOME is set".into() } else { names(&files) };
        return Err(ConnectError::Nowhere(format!(
            "not inside one (KUBERNETES_SERVICE_HOST or the service account is missing), and no kubeconfig at {sought}"
        )));
    }
    from_files(&there, options).await
}

/// Returns the configuration of the pod in which the process runs; `None` outside of one, and in a pod without a service
/// account.
pub(super) fn in_cluster(environment: Environment<'_>) -> Result<Option<(Config, Origin)>, ConnectError> {
    let is_set = |name: &str| environment(name).is_some_and(|value| !value.is_empty());
    let in_pod = is_set("KUBERNETES_SERVICE_HOST") && is_set("KUBERNETES_SERVICE_PORT");
    if !in_pod || !Path::new(SERVICE_ACCOUNT_TOKEN).exists() {
        return Ok(None);
    }
    Ok(Some((Config::incluster()?, Origin::InCluster)))
}

async fn from_files(paths: &[PathBuf], options: &Options) -> Result<(Config, Origin), ConnectError> {
    let files = names(paths);
    let wrong = |problem: String| ConnectError::Malformed { files: files.clone(), problem };
    let mut merged = Kubeconfig::default();
    for path in paths {
        let one = Kubeconfig::read_from(path).map_err(|error| match error {
            KubeconfigError::ReadConfig(source, path) => ConnectError::Read { path, source },
            error => ConnectError::Malformed { files: path.display().to_string(), problem: first_line(&error) },
        })?;
        merged = merged.merge(one).map_err(|error| wrong(first_line(&error)))?;
    }
    let context = choose_context(&merged, options.context.as_deref()).map_err(wrong)?;
    let proxied = has_proxy(&merged, &context);
    if !proxied {
        keep_from_environment(&mut merged, &context);
    }
    let authorities = authorities_file(&merged, &context);
    let chosen = KubeConfigOptions { context: Some(context.clone()), ..KubeConfigOptions::default() };
    let mut config = Config::from_custom_kubeconfig(merged, &chosen)
        .await
        .map_err(|error| wrong(format!("context \"{context}\": {}", first_line(&error))))?;
    config.root_cert_file = authorities;
    if config.cluster_url.scheme().is_none() || config.cluster_url.host().is_none_or(str::is_empty) {
        let server = &config.cluster_url;
        return Err(wrong(format!(
            "context \"{context}\": \"{server}\" is not an address: it must be https:// and a host"
        )));
    }
    if !proxied {
        config.proxy_url = None;
        if let Some(told) = config.auth_info.exec.as_mut().and_then(|plugin| plugin.cluster.as_mut()) {
            told.proxy_url = None;
        }
    }
    Ok((config, Origin::Kubeconfig { files, context }))
}

/// Whether the cluster of this context is configured with a proxy.
fn has_proxy(config: &Kubeconfig, context: &str) -> bool {
    let proxy = cluster(config, context).and_then(|cluster| cluster.proxy_url.as_ref());
    proxy.is_some_and(|proxy| !proxy.is_empty())
}

/// Keeps kube from reading a proxy from the environment, which it does by rules of its own, for a cluster that names none.
fn keep_from_environment(config: &mut Kubeconfig, context: &str) {
    let context = config.contexts.iter().find(|named| named.name == context).and_then(|named| named.context.as_ref());
    let Some(name) = context.map(|context| context.cluster.clone()) else { return };
    let named = config.clusters.iter_mut().find(|named| named.name == name);
    if let Some(cluster) = named.and_then(|named| named.cluster.as_mut()) {
        cluster.proxy_url = Some("http://none".to_owned());
    }
}

/// Returns the file with the authorities of this context's cluster, if they are not inline.
fn authorities_file(config: &Kubeconfig, context: &str) -> Option<PathBuf> {
    let cluster = cluster(config, context)?;
    let is_inline = cluster.certificate_authority_data.as_ref().is_some_and(|data| !data.is_empty());
    let file = cluster.certificate_authority.as_ref().filter(|path| !is_inline && !path.is_empty());
    file.map(PathBuf::from)
}

fn cluster<'a>(config: &'a Kubeconfig, context: &str) -> Option<&'a Cluster> {
    let context = config.contexts.iter().find(|named| named.name == context)?.context.as_ref()?;
    config.clusters.iter().find(|named| named.name == context.cluster)?.cluster.as_ref()
}

/// Returns the context to use, after checking that its cluster and user exist.
fn choose_context(config: &Kubeconfig, asked: Option<&str>) -> Result<String, String> {
    let known = || {
        let names: Vec<_> = config.contexts.iter().map(|context| context.name.as_str()).collect();
        if names.is_empty() { "it has none".to_owned() } else { format!("it has: {}", names.join(", ")) }
    };
    let name = match (asked, config.current_context.as_deref()) {
        (Some(name), _) | (None, Some(name)) if !name.is_empty() => name,
        _ => return Err(format!("no current-context is set and none was asked for ({})", known())),
    };
    let context = config
        .contexts
        .iter()
        .find(|context| context.name == name)
        .and_then(|context| context.context.as_ref())
        .ok_or_else(|| format!("context \"{name}\" does not exist ({})", known()))?;
    if !config.clusters.iter().any(|cluster| cluster.name == context.cluster && cluster.cluster.is_some()) {
        return Err(format!("context \"{name}\" names the cluster \"{}\", which does not exist", context.cluster));
    }
    if let Some(user) = context.user.as_deref().filter(|user| !user.is_empty())
        && !config.auth_infos.iter().any(|info| info.name == user)
    {
        return Err(format!("context \"{name}\" names the user \"{user}\", which does not exist"));
    }
    Ok(name.to_owned())
}

fn names(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Returns the error in one line: parsers of YAML return several.
fn first_line(error: &KubeconfigError) -> String {
    let text = error.to_string();
    text.lines().map(str::trim).filter(|line| !line.is_empty()).take(1).collect()
}
