use proptest::prelude::*;

use super::*;

fn selector(text: &str) -> Selector {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn labels(pairs: &[(&str, &str)]) -> StringMap {
    pairs.iter().copied().collect()
}

#[test]
fn a_selector_prints_in_canonical_form() {
    let check = |given: &str, want: &str| {
        assert_eq!(selector(given).to_string(), want, "{given:?}");
        assert_eq!(selector(want), selector(given), "{given:?} and {want:?} are the same");
    };
    check("", "");
    check("  ", "");
    check("x=a,y=b,z=c", "x=a,y=b,z=c");
    check("x!=a,y=b", "x!=a,y=b");
    check("x=", "x=");
    check("x= ,z= ", "x=,z=");
    check("!x", "!x");
    check("x>1,z<5", "x>1,z<5");
    check("x>007", "x>7");
    check("\rx", "x");
    check("a ", "a");
    check("x==a,a = x", "a=x,x=a");
    check(
        "this-is-another-dns.domain.com/key-with-dash in (what,so)",
        "this-is-another-dns.domain.com/key-with-dash in (so,what)",
    );
    check(
        "0.1.2.domain/99 notin (10.10.100.1, tick.tack.clock)",
        "0.1.2.domain/99 notin (10.10.100.1,tick.tack.clock)",
    );
    check("foo  in\t (abc)", "foo in (abc)");
    check("x notin\n (abc)", "x notin (abc)");
    check("x in (abc,)", "x in (,abc)");
    check("x in (abc,abc)", "x in (abc)");
    check("x in ()", "x in ()");
    check("x in (a,,a,,a,,)", "x in (,a)");
    check("x notin ( )", "x notin ()");
    check("x notin (, a)", "x notin (,a)");
    check("x notin (abc,,def),bar,z in (),w", "bar,w,x notin (,abc,def),z in ()");
    check("a in (x,y,notin, z,in)", "a in (in,notin,x,y,z)");
    check("notin=in,in", "in,notin=in");
    check("in in (in)", "in in (in)");
    check("z!=a,z", "z,z!=a");
    check("a=b,a=b", "a=b");
}

#[test]
fn what_is_no_selector_is_reported_in_upstreams_words() {
    let check = |given: &str, want: &str| {
        let error = given.parse::<Selector>().unwrap_err();
        assert!(error.reason().starts_with(want), "{given:?}: {}", error.reason());
        assert_eq!(error.to_string(), format!("couldn't parse the selector string {given:?}: {}", error.reason()));
    };
    check("x=a||y=b", r#"unable to parse requirement: values[0][x]: Invalid value: "a||y": a valid label must be"#);
    check("x==a==b", "found '==', expected: ',' or 'end of string'");
    check("!x=a", "found '=', expected: ',' or 'end of string'");
    check(
        "x<a",
        r#"unable to parse requirement: values[0]: Invalid value: "a": for 'Gt', 'Lt' operators, the value must be an integer"#,
    );
    check("x>", r#"unable to parse requirement: values[0]: Invalid value: "": for 'Gt'"#);
    check(
        "x>9223372036854775808",
        r#"unable to parse requirement: values[0]: Invalid value: "9223372036854775808": for 'Gt'"#,
    );
    check("x>-1", r#"unable to parse requirement: values[0][x]: Invalid value: "-1": a valid label must"#);
    check("x>+1", r#"unable to parse requirement: values[0][x]: Invalid value: "+1": a valid label must"#);
    check("x,,y", "found ',', expected: identifier after ','");
    check(",x,y", "found ',', expected: !, identifier, or 'end of string'");
    check("(", "found '(', expected: !, identifier, or 'end of string'");
    check("!", "unable to parse requirement: found '', expected: identifier");
    check("!!a", "unable to parse requirement: found '!', expected: identifier");
    check("x nott in (y)", "unable to parse requirement: found 'nott', expected: in, notin, =, ==, !=, gt, lt");
    check("a (", "unable to parse requirement: found '(', expected: in, notin, =, ==, !=, gt, lt");
    check("a in (xyz),", "found '', expected: identifier after ','");
    check("a in (xyz)b notin ()", "found 'b', expected: ',' or 'end of string'");
    check("a in (xyz abc)", "unable to parse requirement: found 'abc', expected: ',' or ')'");
    check("a notin(", "unable to parse requirement: found '', expected: ',', ')' or identifier");
    check("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier");
    check("a in (b,=", "unable to parse requirement: found '=', expected: ',', or identifier");
    check("a in b", "unable to parse requirement: found 'b' expected: '('");
    check("a=(", "unable to parse requirement: found '(', expected: identifier");
    check("a b", "unable to parse requirement: found 'b', expected: in, notin");
    check("-a", r#"unable to parse requirement: key: Invalid value: "-a": name part must consist of"#);
    check("a/b/c", r#"unable to parse requirement: key: Invalid value: "a/b/c": a valid label key must consist of"#);
    check("é=1", r#"unable to parse requirement: key: Invalid value: "é": name part must consist of"#);
}

#[test]
fn all_requirements_must_hold() {
    let check = |text: &str, given: &[(&str, &str)], want: bool| {
        assert_eq!(selector(text).matches(&labels(given)), want, "{text} on {given:?}");
    };
    check("", &[("x", "y")], true);
    check("", &[], true);
    check("x=y", &[("x", "y")], true);
    check("x=y", &[("x", "z")], false);
    check("x=", &[], false);
    check("x=", &[("x", "")], true);
    check("x=y,z=w", &[("x", "y"), ("z", "w")], true);
    check("x=y,z=w", &[("x", "w"), ("z", "w")], false);
    check("x!=y,z!=w", &[("x", "z"), ("z", "a")], true);
    check("x!=y,z!=w", &[("x", "z"), ("z", "w")], false);
    check("x!=y", &[], true);
    check("notin=in", &[("notin", "in")], true);
    check("x", &[("x", "z")], true);
    check("x", &[("y", "z")], false);
    check("!x", &[("y", "z")], true);
    check("!x", &[("x", "z")], false);
    check("x>1", &[("x", "2")], true);
    check("x>1", &[("x", "1")], false);
    check("x>1", &[("x", "v2")], false);
    check("x>1", &[], false);
    check("x<1", &[("x", "0")], true);
    check("x<1", &[("x", "2")], false);
    check("x in (foo),y notin (alpha)", &[("x", "foo"), ("y", "baz")], true);
    check("x in (foo),y in (alpha)", &[("x", "foo"), ("y", "baz")], false);
    check("x notin (),y", &[("y", "")], true);
    check("x in ()", &[("y", "baz")], false);
    check("foo=bar,foobar=bar,baz=blah", &[("foo", "bar"), ("baz", "blah")], false);
}

#[test]
fn an_empty_selector_matches_everything_and_an_absent_one_nothing() {
    let given = labels(&[("a", "b")]);
    let empty = Selector::from_declared(Some(&LabelSelector::default())).unwrap();
    let absent = Selector::from_declared(None).unwrap();
    assert!(empty.matches(&given) && empty.is_everything() && empty == Selector::everything());
    assert!(!absent.matches(&given) && absent.is_nothing() && absent == Selector::nothing());
    assert_eq!(absent.and([Requirement::new("a", Operator::Exists).unwrap()]), Selector::nothing());
    assert_eq!(Selector::from_labels(&StringMap::default()), Selector::everything());
    assert_eq!(Selector::default(), Selector::nothing());
}

#[test]
fn any_map_of_labels_can_be_matched() {
    let wanted = selector("a=b");
    assert!(wanted.matches(&BTreeMap::from([("a".to_owned(), "b".to_owned())])));
    assert!(wanted.matches(&Some(HashMap::from([("a".to_owned(), "b".to_owned())]))));
    assert!(!wanted.matches(&None::<BTreeMap<String, String>>));
}

#[test]
fn an_index_can_be_asked_for_what_must_hold_exactly() {
    let wanted = selector("a=1,b in (2),c in (3,4),d!=5,e,e=6");
    let exact: Vec<_> = wanted.exact_matches().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(exact, ["a=1", "b=2", "e=6"]);
    assert_eq!(wanted.requires_exact_match("b").unwrap(), "2");
    assert_eq!(wanted.requires_exact_match("e").unwrap(), "6", "another requirement on the label is in no way");
    assert_eq!(wanted.requires_exact_match("c"), None);
    assert_eq!(Selector::nothing().exact_matches().count(), 0);
}

#[test]
fn a_requirement_is_validated() {
    let check = |key: &str, operator: Operator, want: &str| {
        let text = Requirement::new(key, operator).unwrap_err().to_string();
        assert!(text.starts_with(want), "{text}");
    };
    let long = "a".repeat(254);
    check(
        "x",
        Operator::is_in([]),
        "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
    );
    check(&long, Operator::Exists, &format!("key: Invalid value: \"{long}\": name part must be no more than 63 bytes"));
    check("x", Operator::Equals("a b".into()), r#"values[0][x]: Invalid value: "a b": a valid label must be"#);
    check("x", Operator::is_not_in(["a", "_"]), r#"values[1][x]: Invalid value: "_": a valid label must be"#);
    check("x", Operator::LessThan(-1), r#"values[0][x]: Invalid value: "-1": a valid label must be"#);
    check("a b", Operator::Equals("-".into()), r#"[key: Invalid value: "a b": name part must consist"#);
}

fn declared(json: &str) -> LabelSelector {
    serde_json::from_str(json).unwrap()
}

#[test]
fn a_declared_selector_compiles() {
    let check = |json: &str, want: &str| assert_eq!(declared(json).compile().unwrap().to_string(), want, "{json}");
    check("{}", "");
    check(r#"{"matchLabels":null,"matchExpressions":null}"#, "");
    check(r#"{"matchLabels":{"foo":"bar","a":""}}"#, "a=,foo=bar");
    check(r#"{"matchExpressions":[{"key":"baz","operator":"In","values":["qux","norf"]}]}"#, "baz in (norf,qux)");
    check(
        r#"{"matchLabels":{"foo":"bar"},"matchExpressions":[{"key":"baz","operator":"NotIn","values":["x"]},
            {"key":"c","operator":"DoesNotExist","values":null},{"key":"b","operator":"Exists"}]}"#,
        "b,baz notin (x),!c,foo=bar",
    );
}

#[test]
fn a_bad_declared_selector_names_field_and_value() {
    let check = |json: &str, want: &str| {
        let text = declared(json).compile().unwrap_err().to_string();
        assert!(text.starts_with(want), "{text}");
    };
    check(r#"{"matchLabels":{"a b":"c"}}"#, r#"matchLabels: Invalid value: "a b": name part must consist"#);
    check(r#"{"matchLabels":{"a":"b c"}}"#, r#"matchLabels: Invalid value: "b c": a valid label must"#);
    check(
        r#"{"matchExpressions":[{"key":"a","operator":"In"}]}"#,
        "matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
    );
    check(
        r#"{"matchExpressions":[{"key":"b","operator":"Exists"},{"key":"a","operator":"Exists","values":["x"]}]}"#,
        "matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
    );
    check(
        r#"{"matchExpressions":[{"key":"a","operator":"Gt","values":["1"]}]}"#,
        r#"matchExpressions[0].operator: Invalid value: "Gt": not a valid selector operator"#,
    );
    check(
        r#"{"matchExpressions":[{"operator":"Exists"}]}"#,
        r#"[matchExpressions[0].key: Invalid value: "": name part"#,
    );
    check(
        r#"{"matchExpressions":[{"key":"a","operator":"In","values":["x","+"]}]}"#,
        r#"matchExpressions[0].values[1]: Invalid value: "+": a valid label"#,
    );
    let at = declared(r#"{"matchLabels":{"a":"-"}}"#).validate("spec.selector");
    assert_eq!(at[0].field, "spec.selector.matchLabels");
}

#[test]
fn a_declared_selector_writes_what_it_read() {
    let json = r#"{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"c","operator":"In","values":["y","x"]}]}"#;
    assert_eq!(serde_json::to_string(&declared(json)).unwrap(), json);
    assert_eq!(serde_json::to_string(&LabelSelector::default()).unwrap(), "{}");
}

#[test]
fn a_selector_is_compact() {
    assert_eq!(size_of::<Selector>(), 16);
    assert!(size_of::<Requirement>() <= 40);
}

fn any_operator() -> impl Strategy<Value = Operator> {
    let value = || "([A-Za-z0-9]([-A-Za-z0-9_.]{0,5}[A-Za-z0-9])?)?";
    let values = || proptest::collection::vec(value(), 1..4);
    prop_oneof![
        Just(Operator::Exists),
        Just(Operator::DoesNotExist),
        value().prop_map(|value| Operator::Equals(value.into())),
        value().prop_map(|value| Operator::NotEquals(value.into())),
        values().prop_map(|values| Operator::is_in(values.iter().map(String::as_str))),
        values().prop_map(|values| Operator::is_not_in(values.iter().map(String::as_str))),
        (0..i64::MAX).prop_map(Operator::GreaterThan),
        (0..i64::MAX).prop_map(Operator::LessThan),
    ]
}

fn any_selector() -> impl Strategy<Value = Selector> {
    let key = "([a-z]{1,3}\\.[a-z]/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,5}[A-Za-z0-9])?|in|notin";
    let requirement = (key, any_operator()).prop_map(|(key, operator)| Requirement::new(&key, operator).unwrap());
    proptest::collection::vec(requirement, 0..5).prop_map(Selector::new)
}

proptest! {
    #[test]
    fn printing_and_parsing_gives_the_selector_back(given in any_selector()) {
        prop_assert_eq!(given.to_string().parse::<Selector>().unwrap(), given);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[ab=!<>(), \t1/é\u{0}-]{0,20}|\\PC*") {
        if let Ok(parsed) = text.parse::<Selector>() {
            prop_assert_eq!(parsed.to_string().parse::<Selector>().unwrap(), parsed);
        }
    }
}
