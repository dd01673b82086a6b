//! Each credential format: matches, non-matches and boundaries.

use std::borrow::Cow;

use super::Redactor;

fn formats() -> Redactor {
    Redactor::builder().build()
}

/// Returns the redacted text; asserts that it is the same for every split of the input in two and byte by
/// byte.
fn redact(redactor: &Redactor, text: &str) -> String {
    let whole = redactor.redact_str(text).into_owned();
    for split in 0..=text.len() {
        let mut out = Vec::new();
        let mut stream = redactor.stream();
        stream.push(&text.as_bytes()[..split], &mut out);
        stream.push(&text.as_bytes()[split..], &mut out);
        stream.finish(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), whole, "cut at {split}");
    }
    let mut out = Vec::new();
    let mut stream = redactor.stream();
    for byte in text.bytes() {
        stream.push(&[byte], &mut out);
    }
    stream.finish(&mut out);
    assert_eq!(String::from_utf8(out).unwrap(), whole, "byte by byte");
    assert_eq!(redactor.redact_str(&whole), whole, "redacting twice changes nothing");
    whole
}

fn tail(length: usize) -> String {
    "a1B2c3D4e5F6g7H8i9J0".chars().cycle().take(length).collect()
}

#[test]
fn tokens_are_masked_at_word_boundaries() {
    let long = tail(40);
    let jwt = format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{long}");
    for (token, kind) in [
        (format!("sk-{long}"), "openai"),
        (format!("sk-proj-{long}-_x"), "openai"),
        (format!("sk-ant-api03-{long}"), "anthropic"),
        (format!("ghp_{long}"), "github"),
        (format!("gho_{long}"), "github"),
        (format!("ghs_{long}"), "github"),
        (format!("github_pat_11AAAA_{long}"), "github"),
        ("AKIAIOSFODNN7EXAMPLE".to_owned(), "aws"),
        ("ASIAIOSFODNN7EXAMPLE".to_owned(), "aws"),
        (format!("AIza{}", tail(35)), "google"),
        (format!("ya29.{long}"), "google"),
        (format!("GOCSPX-{}", tail(28)), "google"),
        ("xoxb-123456789012-abcdefABCDEF".to_owned(), "slack"),
        ("xapp-1-A0123456-abcdef".to_owned(), "slack"),
        (format!("npm_{}", tail(36)), "npm"),
        (format!("pypi-AgEIcHlwaS5vcmc{long}"), "pypi"),
        (jwt.clone(), "jwt"),
    ] {
        let marker = format!("[REDACTED:{kind}]");
        for (before, after) in [
            ("", ""),
            ("key ", "."),
            ("key=", "\n"),
            ("{\"a\":\"", "\"}"),
            ("{\"a\":\"x\\n", "\\n\"}"),
            ("{\"a\":\"\\u000a", "\"}"),
            ("{\"a\":\"{\\\"b\\\":\\\"", "\\\"}\"}"),
            ("\x1b[32m", "\x1b[0m"),
        ] {
            let text = format!("{before}{token}{after}");
            assert_eq!(redact(&formats(), &text), format!("{before}{marker}{after}"));
        }
        let glued = format!("x{token}");
        assert_eq!(redact(&formats(), &glued), glued, "left boundary");
        let short = &token[..token.len().min(11)];
        assert_eq!(redact(&formats(), short), short, "too short");
    }
}

#[test]
fn ordinary_text_is_unchanged() {
    for text in [
        "task-list-of-things-to-do-tomorrow disk-abcdefghijklmnopqrstuvwxyz",
        "class=\"sk-fading-circle sk-circle-inner-rotate-animation\"",
        "npm_config_registry_with_a_very_long_name_for_a_setting",
        "pypi-package-name-that-is-very-long-indeed",
        "AKIAIOSFODNN7EXAMPLEX AKIAshort",
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
        "123e4567-e89b-12d3-a456-426614174000",
        "https://example.com:8080/a/b?c=d@e http://localhost:3000 ssh://git@github.com:22/x",
        "Authorization: required\nauthorization is a hard word\nAuthorization: /docs/authorization/overview",
        "Authorization: Bearer $TOKEN and Bearer <token>",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "eyJhbGciOiJIUzI1NiJ9 eyJhbGciOiJIUzI1NiJ9.short",
    ] {
        assert_eq!(redact(&formats(), text), text);
        assert!(matches!(formats().redact_str(text), Cow::Borrowed(_)));
        assert!(!formats().contains_secret(text));
    }
}

#[test]
fn passwords_in_urls_are_masked() {
    for (text, expected) in [
        ("postgres://me:pass@db/x", "postgres://me:[REDACTED:url]@db/x"),
        ("redis://:p%40ss@h", "redis://:[REDACTED:url]@h"),
        ("https://u:p@ss@h/", "https://u:[REDACTED:url]@h/"),
        (
            "https://u:%s@h/ https://u:$TOKEN@h/ https://u:${token}@h/",
            "https://u:%s@h/ https://u:$TOKEN@h/ https://u:${token}@h/",
        ),
        ("https://u:$ecret1@h/", "https://u:[REDACTED:url]@h/"),
        ("https://u:%s1@h/", "https://u:[REDACTED:url]@h/"),
        ("https://u:${}@h/", "https://u:[REDACTED:url]@h/"),
        ("{\"u\":\"https:\\/\\/u:pw@h\\/\"}", "{\"u\":\"https:\\/\\/u:[REDACTED:url]@h\\/\"}"),
    ] {
        assert_eq!(redact(&formats(), text), expected);
    }
    let token = tail(36);
    let both = format!("https://ghp_{token}:x-oauth-basic@github.com");
    assert_eq!(redact(&formats(), &both), "https://[REDACTED:github]:[REDACTED:url]@github.com");
}

#[test]
fn authorization_headers_are_masked() {
    const MARKER: &str = "[REDACTED:authorization]";
    for (before, secret, after) in [
        ("Authorization: Bearer ", "abcdef123456", "\n"),
        ("authorization: Basic ", "dXNlcjpwYXNz", ""),
        ("curl -H 'PROXY-AUTHORIZATION: token ", "abcdef12", "' x"),
        ("{\"Authorization\":\"Bearer ", "ab.cd-ef_gh~+/=", "\"}"),
        ("{\"Authorization\":\"Basic ", "abcdefgh\\/ijk", "\"}"),
        ("{\"a\":\"{\\\"authorization\\\": \\\"bEaReR ", "abcdefgh", "\\\"}\"}"),
        ("Authorization: ", "0123456789abcdef0123", " x"),
        ("Authorization: AWS4-HMAC-SHA256 ", "Credential=AKIAIOSFODNN7EXAMPLE/20200101", ", x"),
        ("\"authorization\", \"Bearer ", "sk-ant-api03-abcdefghijklmnopqrst", "\""),
        ("headers map[Authorization:[Bearer ", "abcdefgh", "]]"),
    ] {
        let text = format!("{before}{secret}{after}");
        assert_eq!(redact(&formats(), &text), format!("{before}{MARKER}{after}"));
    }
}

#[test]
fn private_keys_are_masked_as_a_whole() {
    let key = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEow+/=\nabc\n-----END RSA PRIVATE KEY-----";
    for form in
        [key.to_owned(), key.replace('\n', "\r\n"), key.replace('\n', "\n   12→"), key.replace('\n', "\n  ")]
    {
        assert_eq!(redact(&formats(), &format!("a {form}\nb c")), "a [REDACTED:pem]\nb c");
    }
    for newline in ["\\n", "\\\\n", "\\r\\n"] {
        let text = format!("{{\"k\":\"{}{newline}\",\"b\":1}}\n{{}}", key.replace('\n', newline));
        assert_eq!(redact(&formats(), &text), format!("{{\"k\":\"[REDACTED:pem]{newline}\",\"b\":1}}\n{{}}"));
    }
    // A key without an end line masks no line that cannot be part of it.
    for next in ["{\"next\":1}\n", "  \"next\"", "://x", "\n\n"] {
        let open = format!("-----BEGIN PRIVATE KEY-----\nMIIE\n{next}");
        assert_eq!(redact(&formats(), &open), format!("[REDACTED:pem]\n{next}"));
    }
    let cut = "{\"k\":\"-----BEGIN PRIVATE KEY-----\\nMIIE\"}\n{\"next\":1}";
    assert_eq!(redact(&formats(), cut), "{\"k\":\"[REDACTED:pem]\"}\n{\"next\":1}");
}

#[test]
fn environment_values_are_masked_in_any_encoding() {
    let value = "pa\"ss\\wörd/1";
    let redactor = Redactor::builder()
        .environment([("DB_PASSWORD", value), ("HOME", "/home/someone"), ("EDITOR", "some-editor")])
        .extra_names(["CORP"])
        .environment([("corp", "corporate value")])
        .secret("configured")
        .build();
    for text in [
        value.to_owned(),
        serde_json::to_string(value).unwrap().trim_matches('"').to_owned(),
        "pa%22ss%5Cw%C3%B6rd%2F1".to_owned(),
        "pa%22ss%5cw%c3%b6rd/1".to_owned(),
        r#"pa\"ss\\w\u00f6rd\/1"#.to_owned(),
        "corporate value".to_owned(),
        "configured".to_owned(),
        "Y29uZmlndXJlZA==".to_owned(),
        "Y29uZmlndXJlZA".to_owned(),
    ] {
        assert_eq!(redact(&redactor, &format!("x {text} y")), "x [REDACTED:env] y", "{text}");
    }
    let json = serde_json::json!({"a": [value, format!("x{value}y")], "n": 1}).to_string();
    assert_eq!(redact(&redactor, &json), r#"{"a":["[REDACTED:env]","x[REDACTED:env]y"],"n":1}"#);
    // `:configured!` after users of three lengths: one for each alignment.
    for blob in ["OmNvbmZpZ3VyZWQh", "dTpjb25maWd1cmVkIQ==", "dXM6Y29uZmlndXJlZCE="] {
        assert!(redact(&redactor, blob).contains("[REDACTED:env]"), "{blob}");
    }
    let stays = "/home/someone some-editor";
    assert_eq!(redact(&redactor, stays), stays);
    assert!(!format!("{redactor:?} {:?}", redactor.stream()).contains("configured"));
}

#[test]
fn json_structure_is_never_masked() {
    let redactor = Redactor::builder()
        .secret("1234567890123456")
        .secret("never-shared")
        .secret("00e9abcdef")
        .secret("a\",\"b\":\"c")
        .build();
    for (text, expected) in [
        (
            "{\"n\":1234567890123456,\"s\":\"1234567890123456\"}",
            "{\"n\":1234567890123456,\"s\":\"[REDACTED:env]\"}",
        ),
        ("[\n  1234567890123456\n]", "[\n  1234567890123456\n]"),
        ("1234567890123456", "[REDACTED:env]"),
        ("{\"s\":\"\\never-shared\"}", "{\"s\":\"\\never-shared\"}"),
        ("{\"s\":\"\\\\never-shared\"}", "{\"s\":\"\\\\[REDACTED:env]\"}"),
        ("{\"s\":\"\\u00e9abcdef\"}", "{\"s\":\"\\u00e9abcdef\"}"),
        ("{\"s\":\"a\",\"b\":\"c\"}", "{\"s\":\"a\",\"b\":\"c\"}"),
    ] {
        assert_eq!(redact(&redactor, text), expected);
    }
}

#[test]
fn overlapping_secrets_are_masked_completely() {
    let redactor =
        Redactor::builder().secret("abcdefghij").secret("ghijklmnop").secret("longpart\"rest").build();
    assert_eq!(redact(&redactor, "xabcdefghijklmnopy"), "x[REDACTED:env]y");
    let text = "Authorization: Bearer longpart\"rest.";
    assert_eq!(redact(&redactor, text), "Authorization: Bearer [REDACTED:authorization]");
}

#[test]
fn complete_lines_are_emitted_at_once_and_endless_tokens_use_no_memory() {
    let redactor = Redactor::builder().secret("some\nsecret").build();
    let mut stream = redactor.stream();
    let mut out = Vec::new();
    for line in ["plain text\n", "{\"a\":\"ask-\"}\n", "Authorization:\n", "eyJhbGci\n", "https://u:p\n"] {
        out.clear();
        stream.push(line.as_bytes(), &mut out);
        assert_eq!(out, line.as_bytes());
    }
    stream.push(b"ghp_", &mut out);
    out.clear();
    for _ in 0..1000 {
        stream.push(&[b'Z'; 1000], &mut out);
    }
    assert_eq!(out, b"[REDACTED:github]");
    assert!(format!("{stream:?}").contains("held: 0"), "{stream:?}");
}

#[test]
fn a_named_variable_is_masked_whatever_its_value_looks_like() {
    for value in [
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "123e4567-e89b-12d3-a456-426614174000",
        "/srv/keys/deploy.pem",
        "agent.sock",
        "https://login.example.com/oauth",
        "disabled",
        "1700000000",
        "hunter2",
        "9421",
    ] {
        let named = Redactor::builder().extra_names(["CORP_ID"]).environment([("corp_id", value)]).build();
        let direct = Redactor::builder().named_secret(value).build();
        for redactor in [&named, &direct] {
            assert_eq!(redact(redactor, &format!("id {value}.")), "id [REDACTED:env].", "{value}");
            let json = format!("{{\"a\":\"{value}\"}}");
            assert_eq!(redact(redactor, &json), "{\"a\":\"[REDACTED:env]\"}", "{value}");
        }
        let guessed = Redactor::builder().environment([("CORP_KEY", value)]).build();
        assert_eq!(redact(&guessed, value), value, "{value} is not masked by name alone");
    }
    for value in ["", "abc", "env", "REDACTED", "github"] {
        let redactor = Redactor::builder().named_secret(value).build();
        assert_eq!(redact(&redactor, "abc env [REDACTED:github]"), "abc env [REDACTED:github]", "{value}");
    }
    let base64 = Redactor::builder().named_secret("123e4567-e89b-12d3-a456-426614174000").build();
    let encoded = "MTIzZTQ1NjctZTg5Yi0xMmQzLWE0NTYtNDI2NjE0MTc0MDAw";
    assert_eq!(redact(&base64, encoded), "[REDACTED:env]");
}

#[test]
fn redactors_share_their_tables_only_if_their_values_are_the_same() {
    let with = |value: &str| Redactor::builder().named_secret(value).build();
    let (first, same, other) = (with("hunter2"), with("hunter2"), with("hunter3"));
    for (redactor, expected) in [
        (&first, "[REDACTED:env] hunter3"),
        (&same, "[REDACTED:env] hunter3"),
        (&other, "hunter2 [REDACTED:env]"),
    ] {
        redactor.prepare();
        assert_eq!(redact(redactor, "hunter2 hunter3"), expected);
    }
}
