//! The guard without an API server; with one: `crates/testing/tests/admin.rs`.

use std::path::Path;

use bytes::Bytes;
use http::{HeaderMap, Request};
use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair};
use steersman_base::Time;

use crate::admin::{Admin, text_page};
use crate::serving::PeerCertificates;

use super::authorities::Authorities;
use super::identity::{bearer_token, user_in_headers};
use super::*;

/// An authority for tests.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    fn client(&self, name: &str, group: &str) -> PeerCertificates {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.distinguished_name.push(DnType::OrganizationName, group);
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&KeyPair::generate().unwrap(), &self.issuer).unwrap();
        PeerCertificates::from_pem(certificate.pem().as_bytes()).unwrap()
    }

    /// A guard that believes this authority's clients, and its proxies named `front-proxy`.
    fn guard(&self, proxies: &Self, directory: &Path) -> Guard {
        let clients = directory.join("ca.crt");
        let proxy = directory.join("proxy.crt");
        std::fs::write(&clients, &self.pem).unwrap();
        std::fs::write(&proxy, &proxies.pem).unwrap();
        let clock = Clock::starting_at(Time::from_unix(1_794_744_000));
        let request_header = RequestHeaderOptions { client_ca_file: proxy, headers: headers() };
        let options = GuardOptions {
            client_ca_file: Some(clients),
            request_header: Some(request_header),
            metrics: Some(Registry::new()),
            ..GuardOptions::new(clock)
        };
        Guard::new(options).unwrap()
    }
}

fn headers() -> RequestHeaders {
    let list = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    RequestHeaders {
        username: list(&["X-Remote-User"]),
        uid: list(&["X-Remote-Uid"]),
        group: list(&["X-Remote-Group"]),
        extra_prefix: list(&["X-Remote-Extra-"]),
        allowed_names: list(&["front-proxy"]),
    }
}

/// A name, the certificate shown, whether a proxy's headers are sent, and who it is.
type Row<'a> = (&'a str, Option<PeerCertificates>, bool, &'a Result<User, ()>);

fn parts(request: Request<()>) -> Parts {
    request.into_parts().0
}

fn user(name: &str, groups: &[&str]) -> User {
    User { name: name.into(), groups: groups.iter().map(|&group| group.to_owned()).collect(), ..User::default() }
}

#[tokio::test(start_paused = true)]
async fn the_user_of_a_client() {
    let directory = std::env::temp_dir().join(format!("steersman-guard-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let clients = Authority::new("clients");
    let proxies = Authority::new("proxies");
    let strangers = Authority::new("nobody");
    let guard = clients.guard(&proxies, &directory);
    std::fs::remove_dir_all(&directory).unwrap();
    let anonymous = Ok(user("system:anonymous", &["system:unauthenticated"]));
    let ann = Ok(user("ann", &["bakers", "system:authenticated"]));
    let proxied = Ok(user("bob", &["eaters", "system:authenticated"]));
    let table: [Row<'_>; 8] = [
        ("nothing shown", None, false, &anonymous),
        ("headers without a certificate mean nothing", None, true, &anonymous),
        ("a client", Some(clients.client("ann", "bakers")), false, &ann),
        ("a client's headers mean nothing", Some(clients.client("ann", "bakers")), true, &ann),
        ("a proxy for a client", Some(proxies.client("front-proxy", "x")), true, &proxied),
        ("a proxy for nobody is no client", Some(proxies.client("front-proxy", "x")), false, &Err(())),
        ("a proxy of another name", Some(proxies.client("other", "x")), true, &Err(())),
        ("a stranger", Some(strangers.client("ann", "bakers")), false, &Err(())),
    ];
    for (name, certificate, reported, want) in table {
        let mut request = Request::get("/metrics");
        if reported {
            request = request.header("x-remote-user", "bob").header("x-remote-group", "eaters");
        }
        let mut parts = parts(request.body(()).unwrap());
        parts.extensions.extend(
            certificate
                .map(|certificate| {
                    let mut extensions = http::Extensions::new();
                    extensions.insert(certificate);
                    extensions
                })
                .unwrap_or_default(),
        );
        assert_eq!(&guard.authenticate(&parts).await.map_err(|_| ()), want, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_have_upstreams_words() {
    let directory = std::env::temp_dir().join(format!("steersman-refusals-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let clients = Authority::new("clients");
    let strangers = Authority::new("nobody");
    let guard = clients.guard(&strangers, &directory);
    std::fs::remove_dir_all(&directory).unwrap();
    let admin = Admin::new("test", Clock::starting_at(Time::from_unix(0)));
    admin.handle("/metrics", |_| text_page(StatusCode::OK, "figures")).unwrap();
    admin.handle("/healthz", |call| text_page(StatusCode::OK, format!("{:?}", call.access))).unwrap();
    admin.guard(guard);
    let forbidden = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":\
                     \"forbidden: User \\\"system:anonymous\\\" cannot get path \\\"/metrics\\\"\",\"reason\":\
                     \"Forbidden\",\"details\":{},\"code\":403}\n";
    let unauthorized = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":\
                        \"Unauthorized\",\"reason\":\"Unauthorized\",\"code\":401}\n";
    let indented = "{\n  \"kind\": \"Status\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {},\n  \"status\": \
                    \"Failure\",\n  \"message\": \"forbidden: User \\\"system:anonymous\\\" cannot get path \
                    \\\"/secret\\\"\",\n  \"reason\": \"Forbidden\",\n  \"details\": {},\n  \"code\": 403\n}";
    let master = clients.client("admin", "system:masters");
    let table = [
        ("/metrics", "go", None, 403, forbidden),
        ("/metrics", "go", Some(Authority::new("x").client("ann", "y")), 401, unauthorized),
        ("/metrics", "go", Some(master.clone()), 200, "figures"),
        ("/healthz", "go", None, 200, "Public"),
        ("/healthz?verbose", "go", Some(clients.client("ann", "bakers")), 200, "Public"),
        ("/healthz?verbose", "go", Some(master.clone()), 200, "Authorised"),
        ("/secret", "curl/8", None, 403, indented),
        ("/secret", "go", Some(master), 404, "404 page not found\n\nThere is:\n/healthz\n/metrics\n"),
    ];
    for (uri, agent, certificate, code, body) in table {
        let mut request = Request::get(uri).header("user-agent", agent).body(Bytes::new()).unwrap();
        if let Some(certificate) = certificate {
            request.extensions_mut().insert(certificate);
        }
        let response = admin.respond(request).await;
        let got = String::from_utf8(response.body().to_vec()).unwrap();
        assert_eq!((response.status().as_u16(), got.as_str()), (code, body), "{uri}");
    }
}

#[test]
fn bearer_tokens_are_read_as_upstream_reads_them() {
    let table = [
        ("Bearer abc", Some("abc")),
        ("bearer abc", Some("abc")),
        ("  Bearer abc  ", Some("abc")),
        ("Bearer abc def", Some("abc")),
        ("Bearer  abc", None),
        ("Bearer", None),
        ("Basic abc", None),
        ("", None),
    ];
    for (text, want) in table {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", text.parse().unwrap());
        assert_eq!(bearer_token(&headers), want, "{text:?}");
    }
}

#[test]
fn a_proxys_headers_are_read_as_upstream_reads_them() {
    let mut reported = HeaderMap::new();
    assert_eq!(user_in_headers(&headers(), &reported), None);
    for (name, value) in [
        ("x-remote-user", "bob"),
        ("x-remote-user", "second"),
        ("x-remote-uid", "42"),
        ("x-remote-group", "a"),
        ("x-remote-group", ""),
        ("x-remote-group", "b"),
        ("x-remote-extra-scopes", "read"),
        ("x-remote-extra-scopes", "write"),
        ("x-remote-extra-acme.com%2fproject", "x"),
    ] {
        reported.append(name, value.parse().unwrap());
    }
    let extra = [("acme.com/project", vec!["x"]), ("scopes", vec!["read", "write"])];
    let extra = extra.map(|(name, values)| (name.to_owned(), values.into_iter().map(str::to_owned).collect()));
    let want = User { uid: "42".into(), extra: extra.into(), ..user("bob", &["a", "b"]) };
    assert_eq!(user_in_headers(&headers(), &reported), Some(want));
}

#[test]
fn a_name_of_any_letters_is_a_name() {
    for (sent, want) in [("jürgen".as_bytes(), "jürgen"), (b"j\xfcrgen", "j\u{fffd}rgen")] {
        let mut reported = HeaderMap::new();
        for name in ["x-remote-user", "x-remote-group", "x-remote-uid", "x-remote-extra-team"] {
            reported.append(name, http::HeaderValue::from_bytes(sent).unwrap());
        }
        let extra = [("team".to_owned(), vec![want.to_owned()])];
        let want = User { uid: want.into(), extra: extra.into(), ..user(want, &[want]) };
        assert_eq!(user_in_headers(&headers(), &reported), Some(want));
    }
}

#[test]
fn open_paths_are_exact_or_end_in_a_star() {
    let open = OpenPaths::parse(&["/healthz".into(), "livez".into(), "/debug/*".into(), "/".into()]).unwrap();
    let table = [
        ("/healthz", true),
        ("/healthz/x", false),
        ("/livez", true),
        ("/debug/x/y", true),
        ("/debug", false),
        ("/", true),
        ("/metrics", false),
    ];
    for (path, want) in table {
        assert_eq!(open.contains(path), want, "{path}");
    }
    for wrong in ["/a*b", "/*/b", "/**"] {
        assert!(OpenPaths::parse(&[wrong.into()]).is_err(), "{wrong}");
    }
    assert!(OpenPaths::parse(&["*".into()]).unwrap().contains("/anything"));
}

#[test]
fn the_config_map_is_read_entry_by_entry() {
    let ca = Authority::new("clients").pem;
    let entries = |entries: &[(&str, &str)]| -> BTreeMap<String, String> {
        entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let read = Authorities::from_entries(&entries(&[("client-ca-file", &ca)])).unwrap();
    assert!(read.client_ca.is_some() && read.request_header.is_none());
    let both = entries(&[
        ("requestheader-client-ca-file", &ca),
        ("requestheader-username-headers", r#"["X-Remote-User"]"#),
        ("requestheader-uid-headers", r#"["X-Remote-Uid"]"#),
        ("requestheader-group-headers", r#"["X-Remote-Group"]"#),
        ("requestheader-extra-headers-prefix", r#"["X-Remote-Extra-"]"#),
        ("requestheader-allowed-names", r#"["front-proxy"]"#),
    ]);
    assert_eq!(Authorities::from_entries(&both).unwrap().request_header.unwrap().headers, headers());
    let wrong = Authorities::from_entries(&entries(&[("requestheader-allowed-names", "front-proxy")])).unwrap_err();
    let start = "requestheader-allowed-names of configmap/extension-apiserver-authentication in kube-system cannot be \
                 used: it is no list of texts: ";
    assert!(wrong.to_string().starts_with(start), "{wrong}");
    assert!(Authorities::from_entries(&entries(&[("client-ca-file", "rubbish")])).is_err());
}

#[tokio::test(start_paused = true)]
async fn what_is_remembered_ends_and_is_bounded() {
    let answers = Remembered::<String, u32>::new(3);
    answers.put("a".into(), 1, Duration::from_secs(10));
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert_eq!(answers.get("a"), Some(1));
    answers.put("a".into(), 2, Duration::from_secs(10));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(answers.get("a"), Some(2), "the newer answer counts");
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_eq!(answers.get("a"), None);
    for number in 0..100 {
        answers.put(number.to_string(), number, Duration::from_secs(10));
    }
    assert_eq!((answers.len(), answers.get("99"), answers.get("0")), (3, Some(99), None));
}

#[test]
fn a_name_cannot_smuggle_html_into_an_answer() {
    let want = "forbidden: User \"&lt;b&gt;\" cannot get path \"/a&amp;b\": because";
    assert_eq!(forbidden("<b>", "get", "/a&b", "because"), want);
}
