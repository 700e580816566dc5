//! The table against the recorded facts, and the syntax against Go's.

use super::*;
use crate::gates::Gates;

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(ToOwned::to_owned).collect()
}

fn taken(line: &str) -> Parsed {
    parse(table(), words(line)).unwrap_or_else(|error| panic!("{line}: {error}"))
}

#[test]
fn every_flag_has_the_section_type_and_default_that_were_recorded() {
    let recorded: Vec<Vec<&str>> = include_str!("../../tests/data/kube-controller-manager-flags.tsv")
        .lines()
        .skip(1)
        .map(|row| row.split('\t').collect())
        .collect();
    assert_eq!(recorded.len(), 148);
    let ours: Vec<&Flag> = table().iter().filter(|flag| !flag.hidden && flag.section != "Steersman").collect();
    assert_eq!(
        ours.iter().map(|flag| flag.name).collect::<Vec<_>>(),
        recorded.iter().map(|row| row[1]).collect::<Vec<_>>()
    );
    for (flag, facts) in ours.iter().zip(&recorded) {
        let name = flag.name;
        assert_eq!(flag.section, facts[0], "--{name}");
        assert_eq!(flag.type_name, facts[2], "--{name}");
        assert_eq!(Kind::named(facts[2]), Some(flag.kind), "--{name}");
        // The effective default is the recorded one, printed as Go prints it.
        let value = flag.default_value();
        if facts[3].is_empty() {
            assert!(!value.is_set() || flag.kind == Kind::Version, "--{name}: {value}");
        } else {
            assert_eq!(value.to_string(), facts[3], "--{name}");
        }
        assert_eq!(
            flag.short,
            facts.get(4).and_then(|note| note.trim().strip_prefix("short=-")?.chars().next()),
            "--{name}"
        );
    }
}

#[test]
fn every_flag_says_in_one_line_what_it_does() {
    for flag in table() {
        assert!(!flag.help.is_empty() && flag.help.len() < 180, "--{}: {:?}", flag.name, flag.help);
        assert!(Kind::named(flag.type_name).is_some(), "--{}", flag.name);
    }
}

#[test]
fn values_are_given_in_gos_syntax() {
    let check = |line: &str, name: &str, want: &str| {
        assert_eq!(taken(line).value(name).to_string(), want, "{line}");
    };
    check("--kubeconfig=a", "kubeconfig", "a");
    check("--kubeconfig a", "kubeconfig", "a");
    check("--kubeconfig --v", "kubeconfig", "--v");
    check("--kubeconfig=", "kubeconfig", "");
    check("--kubeconfig a=b=c", "kubeconfig", "a=b=c");
    check("-v 4", "v", "4");
    check("-v=4", "v", "4");
    check("-v4", "v", "4");
    check("--v=4", "v", "4");
    check("--v 4 -v 2", "v", "2");
    check("--leader-elect", "leader-elect", "true");
    check("--leader-elect=F", "leader-elect", "false");
    check("--leader_elect=0", "leader-elect", "false");
    check("--concurrent_rc_syncs 0x10", "concurrent-rc-syncs", "16");
    check("--leader-elect=false --leader-elect", "leader-elect", "true");
    check("--kube-api-qps=-1", "kube-api-qps", "-1");
    check("--node-eviction-rate=.5", "node-eviction-rate", "0.5");
    check("--node-eviction-rate=0x1p-3", "node-eviction-rate", "0.125");
    check("--kube-api-qps=1_0", "kube-api-qps", "10");
    check("--feature-gates=kube:", "feature-gates", "");
    check("--http2-max-streams-per-connection=-1", "http2-max-streams-per-connection", "-1");
    check("--min-resync-period=90m", "min-resync-period", "1h30m0s");
    check("--controllers=a,b --controllers=-c", "controllers", "[a,b,-c]");
    check("--controllers=", "controllers", "[]");
    check("--tls-curve-preferences=23,24 --tls-curve-preferences=29", "tls-curve-preferences", "[23,24,29]");
    check("--bind-address=::1", "bind-address", "::1");
    check("--tls-sni-cert-key=c,k:a,b --tls-sni-cert-key=d,l", "tls-sni-cert-key", "[c,k:a,b;d,l]");
    check("--allow-metric-labels=m,l=a,b", "allow-metric-labels", "[m,l=a,b]");
    check("--log-text-info-buffer-size=1Ki", "log-text-info-buffer-size", "1Ki");
    check("--vmodule=a=1,b*=2", "vmodule", "a=1,b*=2");
    check("--feature-gates=kube:A=true,B=false --feature-gates C=1", "feature-gates", "A=true,B=false,C=1");
    check("--version", "version", "true");
    check("--version=raw", "version", "raw");
    check("--node-sync-period=5s --", "node-sync-period", "5s");
}

#[test]
fn what_cannot_be_taken_is_one_sentence_with_the_nearest_match() {
    let check = |line: &str, want: &str| {
        let error = parse(table(), words(line)).expect_err(line).to_string();
        assert_eq!(error, want, "{line}");
    };
    check("--leader-elct=false", "there is no flag --leader-elct; did you mean --leader-elect?");
    check("--nothing-like-it", "there is no flag --nothing-like-it");
    check("-leader-elect", "there is no flag -leader-elect; did you mean --leader-elect?");
    check("-x", "there is no flag -x");
    check("--=x", r#""--=x" is not a flag: it has no name"#);
    check("---v=1", r#""---v=1" is not a flag: it has no name"#);
    check("--kubeconfig", "--kubeconfig needs a value: --kubeconfig=string");
    check("foo", r#"no arguments are taken besides flags, but there is "foo""#);
    check(
        "leader-elect=true",
        r#"no arguments are taken besides flags, but there is "leader-elect=true"; did you mean --leader-elect?"#,
    );
    check("-- -v", r#"no arguments are taken besides flags, but there is "-v""#);
    check("--leader-elect maybe", r#"no arguments are taken besides flags, but there is "maybe""#);
    check("--leader-elect=maybe", r#"--leader-elect: "maybe" is neither true nor false"#);
    check("--concurrent-gc-syncs=x", r#"--concurrent-gc-syncs: "x" is not a whole number"#);
    check(
        "--concurrent-gc-syncs=3000000000",
        r#"--concurrent-gc-syncs: "3000000000" is not between -2147483648 and 2147483647"#,
    );
    check("--kube-api-qps=1e99", r#"--kube-api-qps: "1e99" is not a number, or too large"#);
    check("--min-resync-period=5", r#"--min-resync-period: "5" is not a duration such as 1h2m3s or 500ms"#);
    check("--bind-address=foo", r#"--bind-address: "foo" is not an IP address"#);
    check("-v=-1", r#"--v: "-1" is not a level: a whole number, 0 or more"#);
    check("--vmodule=x", r#"--vmodule: "x" is not of the form pattern=N: "x""#);
    check(
        "--feature-gates=wardle:A=true",
        r#"--feature-gates: "wardle:A=true" names the component "wardle"; there is only kube"#,
    );
    check("--tls-sni-cert-key=c", r#"--tls-sni-cert-key: "c" is not of the form cert,key or cert,key:name,…"#);
    check("--tls-sni-cert-key=c,k:", r#"--tls-sni-cert-key: "c,k:" has no names behind the colon"#);
    check("--allow-metric-labels=m", r#"--allow-metric-labels: "m" is not of the form key=value,…"#);
    check(
        "--log-json-info-buffer-size=x",
        r#"--log-json-info-buffer-size: "x" is not a quantity such as 512, 1K or 2Mi"#,
    );
    check("--version=v1.2.3", r#"--version: "v1.2.3" is not the version this is, which starts with v1.37.1"#);
}

#[test]
fn values_that_do_not_go_together_are_refused_as_upstream_does() {
    let check = |line: &str, want: &str| {
        let flags = taken(line);
        let gates = Gates::parse(flags.texts("feature-gates")).expect(line);
        let wrong = check(&flags, &gates).join("; ");
        assert_eq!(wrong, want, "{line}");
    };
    check("", "");
    check("--leader-elect=false --leader-elect-lease-duration=1s", "");
    check("--secure-port=0 --tls-min-version=VersionTLS13 --cloud-provider=external", "");
    check("--secure-port=70000", "--secure-port: 70000 is not between 0 and 65535");
    check("--concurrent-gc-syncs=0", "--concurrent-gc-syncs: 0 workers do nothing; give at least 1");
    check("--concurrent-service-endpoint-syncs=51", "--concurrent-service-endpoint-syncs: 51 is not between 1 and 50");
    check("--logging-format=jsn", r#"--logging-format: "jsn" is not known; did you mean json?"#);
    check("--cloud-provider=aws", r#"--cloud-provider: "aws" is not known; there is external"#);
    check(
        "--leader-elect-lease-duration=10s",
        "--leader-elect-lease-duration must be longer than --leader-elect-renew-deadline",
    );
    check(
        "--leader-elect-renew-deadline=2400ms",
        "--leader-elect-renew-deadline must be more than 1.2 times --leader-elect-retry-period",
    );
    check(
        "--leader-elect-resource-lock=endpoints",
        r#"--leader-elect-resource-lock: "endpoints" is not known; there is leases"#,
    );
    check(
        "--cluster-signing-legacy-unknown-cert-file=c",
        "--cluster-signing-legacy-unknown-cert-file and --cluster-signing-legacy-unknown-key-file go together",
    );
    check("--allow-metric-labels=m:n,l=a,b --disabled-metrics=a:b,c_d", "");
    check("--allow-metric-labels=m=a", r#"--allow-metric-labels: "m" is not of the form metric,label=value,…"#);
    check("--allow-metric-labels=m,l:k=a", r#"--allow-metric-labels: "m,l:k" is not of the form metric,label=value,…"#);
    check("--disabled-metrics=a-b", r#"--disabled-metrics: "a-b" is not the name of a metric"#);
    check("--disabled-metrics=1a", r#"--disabled-metrics: "1a" is not the name of a metric"#);
    check("--vmodule=a=1 --logging-format=json", "--vmodule is for --logging-format=text");
    check("--log-text-split-stream", "--log-text-split-stream needs the feature gate LoggingAlphaOptions");
    check("--log-text-split-stream --feature-gates=LoggingAlphaOptions=true", "");
    check("--requestheader-uid-headers=X-Uid", "--requestheader-uid-headers: X-Remote-Uid must be one of them");
    check("--emulated-version=1.20", r#"--emulated-version: "1.20" is not one of kube=1.34 to kube=1.37"#);
    check("--attach-detach-reconcile-sync-period=1ms", "--attach-detach-reconcile-sync-period: it must be at least 1s");
    check("--min-resync-period=-1s", "");
    check("--tls-cert-file=c", "--tls-cert-file and --tls-private-key-file go together");
}

#[test]
fn flags_without_effect_are_known_as_such() {
    let reported = |line: &str| -> Vec<&str> {
        let flags = taken(line);
        flags.given().iter().filter(|flag| !flag.does_something()).map(|flag| flag.name).collect()
    };
    assert_eq!(reported("--v=1 --kubeconfig=x --concurrent-replicaset-syncs=3"), [""; 0]);
    assert_eq!(reported("--cloud-config=x --concurrent-gc-syncs=3 --cloud-config=y"), ["cloud-config"]);
}

#[test]
fn help_shows_every_section_and_flag_as_upstream_does() {
    let text = help("kube-controller-manager", "All controllers: a", "kube:A=true|false");
    for flag in table().iter().filter(|flag| !flag.hidden) {
        assert!(text.contains(&format!("--{}", flag.name)), "--{}", flag.name);
        assert!(text.contains(&format!("\n{} flags:\n", flag.section)), "{}", flag.section);
    }
    for want in [
        "\nReplicaset-controller flags:\n\n      --concurrent-replicaset-syncs int32   ReplicaSets worked on at once (default 5)\n",
        "      --profiling              Serve profiles",
        "  -v, --v Level",
        "(default \"kubernetes\")",
        "(default [x-remote-user])",
        "(default 12h0m0s)",
    ] {
        assert!(text.contains(want), "{want} is not in\n{text}");
    }
    assert!(!text.contains("node-sync-period"), "hidden flags are not shown");
}
