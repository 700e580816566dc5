use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

/// A directory that goes with the test.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("steersman-connection-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(super) fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn kubeconfig(server: &str, user: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "{server}"}}}}]
users: [{{name: u, user: {user}}}]
contexts: [{{name: a, context: {{cluster: c, user: u, namespace: n}}}}, {{name: b, context: {{cluster: none, user: u}}}}, {{name: d, context: {{cluster: c, user: nobody}}}}]
current-context: a
"#
    )
}

pub(super) fn named(path: &Path) -> Options {
    Options { kubeconfig: Some(path.to_owned()), ..Options::default() }
}

/// What connecting fails with, `{F}` standing for the file.
async fn failure(path: &Path, options: Options) -> String {
    let error = match Connection::load(options).await {
        Ok(connection) => connection.client().await.err().expect("a failure"),
        Err(error) => error,
    };
    error.to_string().replace(&path.display().to_string(), "{F}")
}

#[tokio::test]
async fn a_missing_kubeconfig_is_named() {
    let folder = Folder::new();
    let path = folder.0.join("none");
    assert_eq!(
        failure(&path, named(&path)).await,
        "cannot read kubeconfig {F}: No such file or directory (os error 2)"
    );
    let text = failure(&folder.0, named(&folder.0)).await;
    assert!(text.starts_with("cannot read kubeconfig {F}: Is a directory"), "{text}");
}

#[tokio::test]
async fn a_malformed_kubeconfig_is_one_sentence() {
    let folder = Folder::new();
    for (name, content) in
        [("yaml", "clusters: [{name: x\n- y: ]"), ("shape", "clusters: 12"), ("binary", "\u{0}\u{1}{{{")]
    {
        let path = folder.write(name, content);
        let text = failure(&path, named(&path)).await;
        assert!(text.starts_with("kubeconfig {F}: ") && !text.contains('\n'), "{text}");
    }
    let path = folder.write("empty", "");
    assert_eq!(
        failure(&path, named(&path)).await,
        "kubeconfig {F}: no current-context is set and none was asked for (it has none)"
    );
}

#[tokio::test]
async fn what_a_context_names_must_exist() {
    let folder = Folder::new();
    let path = folder.write("config", &kubeconfig("https://localhost:1", "{}"));
    let ask = |context: &str| Options { context: Some(context.to_owned()), ..named(&path) };
    assert_eq!(failure(&path, ask("x")).await, "kubeconfig {F}: context \"x\" does not exist (it has: a, b, d)");
    assert_eq!(
        failure(&path, ask("b")).await,
        "kubeconfig {F}: context \"b\" names the cluster \"none\", which does not exist"
    );
    assert_eq!(
        failure(&path, ask("d")).await,
        "kubeconfig {F}: context \"d\" names the user \"nobody\", which does not exist"
    );
    let connection = Connection::load(ask("a")).await.unwrap();
    assert_eq!((connection.server().as_str(), connection.default_namespace()), ("https://localhost:1", "n"));
}

#[tokio::test]
async fn an_address_must_be_one() {
    let folder = Folder::new();
    for server in ["nonsense", "", "https://"] {
        let path = folder.write("config", &kubeconfig(server, "{}"));
        let text = failure(&path, named(&path)).await;
        assert!(text.starts_with("kubeconfig {F}: context \"a\""), "{text}");
    }
    let path = folder.write("config", &kubeconfig("https://localhost:1", "{}"));
    let overruled = |server: &str| Options { server: Some(server.to_owned()), ..named(&path) };
    let text = failure(&path, overruled("ftp://x")).await;
    assert_eq!(text, "\"ftp://x\" is not the address of a server: it must be http:// or https:// and a host");
    assert_eq!(Connection::load(overruled("https://other")).await.unwrap().server(), "https://other");
    assert_eq!(Connection::load(overruled("other:8080")).await.unwrap().server(), "http://other:8080");
}

#[tokio::test]
async fn errors_of_credentials_name_their_context() {
    let folder = Folder::new();
    let garbage = folder.write("garbage", "no PEM");
    let garbage = garbage.display();
    let check = async |user: &str, part: &str| {
        let path = folder.write("config", &kubeconfig("https://localhost:1", user));
        let text = failure(&path, named(&path)).await;
        assert!(text.contains(part) && !text.contains('\n'), "{text}");
        assert!(text.contains("context \"a\" in {F}"), "{text}");
    };
    check("{tokenFile: /no/such/token}", "cannot read the token file /no/such/token: No such file").await;
    check(&format!("{{client-certificate: {garbage}, client-key: {garbage}}}"), "cannot use the credentials").await;
    check("{client-certificate: /no/such, client-key: /no/such}", "No such file").await;
    check("{client-certificate-data: '!', client-key-data: '!'}", "cannot use the credentials").await;
    check("{exec: {apiVersion: client.authentication.k8s.io/v1, command: /no/such/plug-in}}", "No such file").await;
    check("{exec: {apiVersion: client.authentication.k8s.io/v1, command: 'false'}}", "false").await;
}

#[tokio::test]
async fn a_proxy_that_cannot_be_used_is_named_without_its_password() {
    let folder = Folder::new();
    for (proxy, problem) in [
        (
            "ftp://me:secret@proxy:3128",
            "ftp://proxy:3128 from context \"a\" in {F}: unsupported scheme \"ftp\", must be http, https, or socks5",
        ),
        ("proxy:3128", "proxy:3128 from context \"a\" in {F}: it has no scheme, must be http, https, or socks5"),
    ] {
        let text =
            kubeconfig("https://localhost:1", "{}").replace("{server: ", &format!("{{proxy-url: '{proxy}', server: "));
        let path = folder.write("config", &text);
        assert_eq!(failure(&path, named(&path)).await, format!("cannot use the proxy {problem}"));
    }
}

#[tokio::test]
async fn without_a_cluster_and_a_kubeconfig_the_places_are_named() {
    let environment = |pairs: &'static [(&str, &str)]| {
        move |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
    };
    let load =
        async |pairs| source::load(&Options::default(), &environment(pairs)).await.map(|_| ()).unwrap_err().to_string();
    let text = load(&[("HOME", "/nowhere")]).await;
    assert!(text.starts_with("no cluster to talk to: not inside one"), "{text}");
    assert!(text.ends_with("no kubeconfig at /nowhere/.kube/config"), "{text}");
    assert!(load(&[("KUBECONFIG", "/x:/y"), ("HOME", "/nowhere")]).await.ends_with("no kubeconfig at /x, /y"));
    assert!(load(&[]).await.ends_with("neither KUBECONFIG nor HOME is set"));
}

#[tokio::test]
async fn a_server_without_credentials_is_used_anonymously() {
    let options = Options { server: Some("http://localhost:1".into()), ..Options::default() };
    let home = |name: &str| (name == "HOME").then(|| OsString::from("/nowhere"));
    let (config, origin) = source::load(&options, &home).await.unwrap();
    assert_eq!((config.cluster_url.to_string().as_str(), origin), ("http://localhost:1/", Origin::Named));
}

#[tokio::test]
async fn several_kubeconfigs_are_merged_and_the_first_wins() {
    let folder = Folder::new();
    let first = folder.write("first", "current-context: a\n");
    let second = folder
        .write("second", &kubeconfig("https://localhost:1", "{}").replace("current-context: a", "current-context: b"));
    let list = std::env::join_paths([&first, &folder.0.join("none"), &second]).unwrap();
    let environment = move |name: &str| (name == "KUBECONFIG").then(|| list.clone());
    let (config, origin) = source::load(&Options::default(), &environment).await.unwrap();
    assert_eq!(config.cluster_url, "https://localhost:1/");
    let files = format!("{}, {}", first.display(), second.display());
    assert_eq!(origin, Origin::Kubeconfig { files, context: "a".into() });
}

#[tokio::test]
async fn a_kubeconfig_that_points_nowhere_names_host_context_and_file() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let folder = Folder::new();
    let path = folder.write("config", &kubeconfig(&format!("https://127.0.0.1:{port}"), "{token: x}"));
    let connection = Connection::load(named(&path)).await.unwrap();
    let client = connection.client().await.unwrap();
    let text = connection.check_reachable(&client).await.unwrap_err().to_string();
    let file = path.display();
    let want = format!("cannot reach https://127.0.0.1:{port} (from context \"a\" in {file}): Connection refused");
    assert!(text.starts_with(&want), "{text}");
}

#[tokio::test]
async fn a_server_that_speaks_no_tls_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    });
    let folder = Folder::new();
    let path = folder.write("config", &kubeconfig(&format!("https://127.0.0.1:{port}"), "{token: x}"));
    let connection = Connection::load(named(&path)).await.unwrap();
    let client = connection.client().await.unwrap();
    let text = connection.check_reachable(&client).await.unwrap_err().to_string();
    assert!(text.starts_with(&format!("cannot reach https://127.0.0.1:{port} (from context")), "{text}");
}

/// Answers one request per connection with this status, and passes on the head that it was sent.
async fn answering(status: &'static str) -> (String, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let (heads, seen) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") && socket.read_buf(&mut head).await.unwrap() > 0 {}
            let _ = heads.send(String::from_utf8(head).unwrap());
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            let _ = socket.write_all(answer.as_bytes()).await;
        }
    });
    (server, seen)
}

#[tokio::test]
async fn a_request_carries_token_user_agent_and_nothing_is_retried() {
    let folder = Folder::new();
    let token = folder.write("token", "secret\n");
    let (server, mut seen) = answering("503 Service Unavailable").await;
    let path = folder
        .write("config", &kubeconfig(&server, &format!("{{tokenFile: {}, token: other, as: jane}}", token.display())));
    let options = Options { user_agent: Some("test".into()), ..named(&path) };
    let connection = Connection::load(options).await.unwrap();
    let client = connection.client().await.unwrap();
    let text = connection.check_reachable(&client).await.unwrap_err().to_string();
    assert!(text.ends_with("it answers 503 Service Unavailable"), "{text}");
    let head = seen.recv().await.unwrap();
    assert!(head.starts_with("GET /version HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("authorization: Bearer secret\r\n"), "{head}");
    assert!(head.contains("impersonate-user: jane\r\n"), "{head}");
    assert!(head.contains("user-agent: steersman/") && head.contains(") test\r\n"), "{head}");
    assert!(seen.try_recv().is_err(), "asked once");
}

#[tokio::test]
async fn a_configuration_of_the_program_is_used_and_named() {
    let (server, mut seen) = answering("401 Unauthorized").await;
    let text = kubeconfig(&server, "{token: secret}");
    let read = kube::config::Kubeconfig::from_yaml(&text).unwrap();
    let config = Config::from_custom_kubeconfig(read, &kube::config::KubeConfigOptions::default()).await.unwrap();
    let connection = Connection::from_config(config, Options::default().user_agent("test")).unwrap();
    assert_eq!((connection.origin(), connection.default_namespace()), (&Origin::Given, "n"));
    let client = connection.client().await.unwrap();
    let error = connection.check_reachable(&client).await.unwrap_err().to_string();
    assert!(error.contains("does not accept the credentials of the given configuration"), "{error}");
    let head = seen.recv().await.unwrap();
    assert!(head.contains("authorization: Bearer secret\r\n") && head.contains(") test\r\n"), "{head}");
}

#[tokio::test]
async fn a_401_is_distinguished_from_an_unreachable_server() {
    let folder = Folder::new();
    let (server, _seen) = answering("401 Unauthorized").await;
    let path = folder.write("config", &kubeconfig(&server, "{token: wrong}"));
    let connection = Connection::load(named(&path)).await.unwrap();
    let client = connection.client().await.unwrap();
    let error = connection.check_reachable(&client).await.unwrap_err();
    assert!(matches!(error, ConnectError::Unauthorized { .. }), "{error}");
    assert!(!format!("{connection:?}").contains("wrong"), "secrets stay out of logs");
}

#[tokio::test(start_paused = true)]
async fn a_token_is_read_again_after_a_minute_and_kept_if_the_file_goes() {
    let folder = Folder::new();
    let path = folder.write("token", "one");
    let token = token::TokenFile::open(path.clone()).await.unwrap();
    folder.write("token", " two\n");
    assert_eq!(token.header().await, "Bearer one");
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(token.header().await, "Bearer two");
    std::fs::remove_file(&path).unwrap();
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(token.header().await, "Bearer two");
    let empty = folder.write("empty", "\n");
    assert!(token::TokenFile::open(empty).await.is_err());
}
