//! Properties of redaction and sanitising over random documents.
//!
//! A document is a list of pieces: prose, digests and UUIDs, which must remain, and credentials and environment
//! values, which must not. It is written as plain text or as JSON in several layouts, and split at random.

use std::sync::LazyLock;

use delegator_domain::redact::Redactor;
use delegator_domain::terminal::{fenced, inline_code, sanitize};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use serde_json::{Value, json};

/// Values that contain every kind of character that some encoding escapes.
const VALUES: &[&str] = &[
    "correct horse battery",
    "quo\"ted\\back\\\\slash\"inside",
    "first line\nsecond \"line\"\nthird\tline",
    "pässwörd-ünïcode-😀!",
    "é-starts-with-accent",
    "a/b+c=d&e<f>g%20h",
    "nabcdefgh-starts-like-an-escape",
    "u00e9abcdef",
    "1234567890123456789",
    "kJ8/dn+3Zs0q==",
    "+plus-first/é\"",
    "tail\u{1b}[control\u{1}",
];

static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| {
    let names = (0..).map(|index| format!("SERVICE_{index}_TOKEN"));
    Redactor::builder().environment(names.zip(VALUES.iter().copied())).build()
});

#[derive(Debug, Clone)]
enum Piece {
    /// Must remain unchanged.
    Ordinary(String),
    /// A secret that must not remain, and the text that contains it.
    Secret(String, String),
}

impl Piece {
    fn text(&self) -> &str {
        match self {
            Self::Ordinary(text) | Self::Secret(_, text) => text,
        }
    }
}

fn ordinary() -> impl Strategy<Value = Piece> {
    prop_oneof![
        "(task|disk|the author|authorization of|Bearer|sk|monkey|key|é😀|a\\\\b|C:\\\\new|say \"hi\"|x,y|100%)",
        "[a-z]{1,12}",
        "[0-9a-f]{40}",
        "[0-9a-f]{64}",
        "sha256:[0-9a-f]{64}",
        "sha512-[A-Za-z0-9+/]{86}==",
        "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
        "https://[a-z]{3,9}\\.example(:[0-9]{4})?/[a-z]{1,9}(\\?q=a@b)?",
        "/(usr|home)/[a-z]{1,8}/[a-z]{1,8}\\.rs",
    ]
    .prop_map(Piece::Ordinary)
}

fn token() -> impl Strategy<Value = Piece> {
    prop_oneof![
        "sk-[A-Za-z0-9]{48}",
        "sk-proj-[A-Za-z0-9_-]{40}x",
        "sk-ant-api03-[A-Za-z0-9_-]{60}AA",
        "gh[pousr]_[A-Za-z0-9]{36}",
        "github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}",
        "A[KS]IA[A-Z0-9]{16}",
        "AIza[A-Za-z0-9_-]{35}",
        "ya29\\.[A-Za-z0-9_-]{60}",
        "GOCSPX-[A-Za-z0-9_-]{28}",
        "xox[abpr]-[0-9]{12}-[A-Za-z0-9]{24}",
        "xapp-1-[A-Z0-9]{10}-[0-9]{12}-[a-f0-9]{32}",
        "npm_[A-Za-z0-9]{36}",
        "pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{60}",
        "eyJ[A-Za-z0-9_-]{20}\\.eyJ[A-Za-z0-9_-]{40}\\.[A-Za-z0-9_-]{43}",
        "eyJ[A-Za-z0-9_-]{20}\\.[A-Za-z0-9_-]{40}\\.[A-Za-z0-9_-]{43}",
    ]
    .prop_map(|text| Piece::Secret(text.clone(), text))
}

fn credential_in_context() -> impl Strategy<Value = Piece> {
    let url = ("[a-z]{3,8}://[a-z]{0,6}:", "[A-Za-z0-9!$%&*+;=._~-]{6,30}", "@[a-z]{2,8}(/[a-z]{1,5})?");
    let header = (
        "((p|P)roxy-)?[aA][uU][tT][hH][oO][rR][iI][zZ][aA][tT][iI][oO][nN]: ?([bB]earer|BASIC|token) ",
        "[A-Za-z0-9][A-Za-z0-9._~+/-]{12,40}=?",
        "",
    );
    let pem = (
        "-----BEGIN (RSA |EC |OPENSSH )?PRIVATE KEY-----\n",
        "([A-Za-z0-9+/]{64}\n){1,3}[A-Za-z0-9+/]{20}==",
        "\n-----END (RSA |EC |OPENSSH )?PRIVATE KEY-----",
    );
    prop_oneof![url, header, pem].prop_map(|(before, secret, after): (String, String, String)| {
        let text = format!("{before}{secret}{after}");
        Piece::Secret(secret, text)
    })
}

fn value() -> impl Strategy<Value = Piece> {
    let form = |(value, form): (&str, usize)| {
        let text = match form {
            0 => value.to_owned(),
            1 => percent(value, false),
            2 => percent(value, true),
            3 => base64(value),
            4 => base64(&format!("user:{value}")),
            _ => base64(value).trim_end_matches('=').replace('+', "-").replace('/', "_"),
        };
        Piece::Secret(value.to_owned(), text)
    };
    (proptest::sample::select(VALUES), 0..6usize).prop_map(form)
}

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    proptest::collection::vec(
        prop_oneof![3 => ordinary(), 2 => token(), 1 => credential_in_context(), 2 => value()],
        1..6,
    )
}

fn percent(text: &str, lower: bool) -> String {
    let escape = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ if lower => format!("%{byte:02x}"),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

fn base64(text: &str) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::new();
    for group in text.as_bytes().chunks(3) {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | usize::from(group.get(at).copied().unwrap_or(0)));
        for at in 0..4 {
            let digit = char::from(ALPHABET[bits >> (18 - 6 * at) & 63]);
            encoded.push(if at <= group.len() { digit } else { '=' });
        }
    }
    encoded
}

/// Non-ASCII characters as `\uXXXX`, as many encoders write them.
fn ascii_json(json: &str) -> String {
    let mut text = String::new();
    for char in json.chars() {
        if char.is_ascii() {
            text.push(char);
        } else {
            let mut units = [0; 2];
            text.extend(char.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    text
}

const SEPARATORS: &[&str] = &[" ", "\n", "\t", ", ", " \"", " = ", "\r\n", " ("];

fn joined(pieces: &[Piece], separator: usize) -> String {
    let texts: Vec<&str> = pieces.iter().map(Piece::text).collect();
    format!("log {}", texts.join(SEPARATORS[separator % SEPARATORS.len()]))
}

fn document(pieces: &[Piece], separator: usize, layout: usize) -> String {
    let text = joined(pieces, separator);
    let texts: Vec<&str> = pieces.iter().map(Piece::text).collect();
    // As a JSON number, a value that equals a secret stays; inside a string it is text.
    let number = if matches!(layout, 3 | 6) { 7 } else { 1_234_567_890_123_456_789_u64 };
    let value = json!({"text": text, "list": texts, "n": number, "x": [1.5, null, true]});
    match layout {
        0 => text,
        1 => format!("{value}\n{}\n", json!([text, 7])),
        2 => format!("{value:#}"),
        3 => format!("{}\n", json!({"inner": value.to_string(), "ok": false})),
        4 => ascii_json(&value.to_string()),
        5 => value.to_string().replace('/', "\\/"),
        _ => format!("{}\n", json!({"deep": json!({"inner": value.to_string()}).to_string()})),
    }
}

fn stream(redactor: &Redactor, text: &[u8], cuts: &[usize]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut stream = redactor.stream();
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    cuts.sort_unstable();
    let mut from = 0;
    for cut in cuts {
        stream.push(&text[from..cut], &mut out);
        from = cut;
    }
    stream.push(&text[from..], &mut out);
    stream.finish(&mut out);
    out
}

fn values_of(text: &str) -> Vec<Value> {
    serde_json::Deserializer::from_str(text).into_iter().collect::<Result<_, _>>().unwrap_or_default()
}

/// Whether both have the same keys and values, except for the contents of strings.
fn same_shape(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::String(_), Value::String(_)) => true,
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same_shape(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|((left_key, left), (right_key, right))| {
                    left_key == right_key && same_shape(left, right)
                })
        }
        _ => left == right,
    }
}

/// The text itself and, if it is JSON, with one, two and three layers of JSON escapes removed.
fn decodings(text: &str) -> Vec<String> {
    fn strings(value: &Value, into: &mut Vec<String>) {
        match value {
            Value::String(text) => {
                into.push(text.clone());
                values_of(text).iter().for_each(|inner| strings(inner, into));
            }
            Value::Array(items) => items.iter().for_each(|item| strings(item, into)),
            Value::Object(fields) => fields.values().for_each(|field| strings(field, into)),
            _ => {}
        }
    }
    let mut all = vec![text.to_owned()];
    values_of(text).iter().for_each(|value| strings(value, &mut all));
    all
}

fn is_invisible(char: char) -> bool {
    matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
        || ('\u{e0000}'..='\u{e007f}').contains(&char)
}

fn check(redactor: &Redactor, pieces: &[Piece], document: &str, cuts: &[usize]) -> TestCaseResult {
    let whole = redactor.redact_str(document).into_owned();
    let streamed = stream(redactor, document.as_bytes(), cuts);
    prop_assert_eq!(String::from_utf8_lossy(&streamed), whole.as_str());
    prop_assert_eq!(&redactor.redact_str(&whole), &whole);
    let (before, after) = (values_of(document), values_of(&whole));
    prop_assert_eq!(before.len(), after.len(), "no longer JSON: {}", whole);
    prop_assert!(before.iter().zip(&after).all(|(before, after)| same_shape(before, after)), "{}", whole);
    let decodings = decodings(&whole);
    for piece in pieces {
        match piece {
            Piece::Ordinary(text) => {
                prop_assert!(
                    decodings.iter().any(|decoding| decoding.contains(text)),
                    "{} lost: {}",
                    text,
                    whole
                )
            }
            Piece::Secret(secret, _) => {
                let forms = [secret.clone(), percent(secret, false), percent(secret, true), base64(secret)];
                // Outside a string the same digits are a number, and stay.
                let is_number = secret.bytes().all(|byte| byte.is_ascii_digit());
                let from = usize::from(is_number && decodings.len() > 1);
                for decoding in &decodings[from..] {
                    let passed = forms.iter().find(|form| decoding.contains(form.as_str()));
                    prop_assert!(passed.is_none(), "{:?} passed: {}", passed, decoding);
                }
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(10_000) })]

    #[test]
    fn no_document_keeps_a_credential(
        pieces in pieces(),
        separator in 0..8usize,
        layout in 0..7usize,
        cuts in proptest::collection::vec(any::<usize>(), 0..6),
    ) {
        let document = document(&pieces, separator, layout);
        check(&REDACTOR, &pieces, &document, &cuts)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn any_value_is_masked(
        value in "[a-zA-Z0-9+/%é😀][a-z\"\\\\\n\t/%é😀 &+]{8,20}[a-z0-9é😀=]",
        layout in 0..7usize,
        cuts in proptest::collection::vec(any::<usize>(), 0..6),
    ) {
        let redactor = Redactor::builder().secret(value.as_str()).build();
        let ordinary = Piece::Ordinary("ZZZ".to_owned());
        let secret = Piece::Secret(value.clone(), value.clone());
        prop_assume!(redactor.contains_secret(&value));
        let pieces = [ordinary.clone(), secret, ordinary];
        check(&redactor, &pieces, &document(&pieces, 0, layout), &cuts)?;
    }

    #[test]
    fn the_output_does_not_depend_on_splits(
        text in "([a-z\\\\\"/:@.{}\\[ \n%-]|sk-|eyJ|://|\\\\u00|Authorization: |-----BEGIN |PRIVATE KEY-----|abcdefgh|ghp_[a-z0-9]{20}|é){0,40}",
        cuts in proptest::collection::vec(any::<usize>(), 0..30),
    ) {
        let redactor = Redactor::builder().secret("abcdefgh\"é-ab").secret("é-abcdefgh").build();
        let whole = redactor.redact_str(&text);
        let cut = stream(&redactor, text.as_bytes(), &cuts);
        prop_assert_eq!(String::from_utf8(cut).unwrap(), whole.as_ref());
        prop_assert_eq!(redactor.redact_str(&whole), whole.as_ref());
    }

    #[test]
    fn any_json_stays_json(
        strings in proptest::collection::vec("([a-z\\\\\"/:@ \n]|abcdefgh|é|sk-[a-z0-9]{20}|-----BEGIN PRIVATE KEY-----|Authorization: Bearer ){0,20}", 1..4),
        pretty in any::<bool>(),
    ) {
        let redactor = Redactor::builder().secret("nabcdefgh\"é").secret("é\\abcdefgh").secret("u00e9abcd").build();
        let value = json!({"a": strings, "b": {"c": strings.concat()}});
        let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
        for text in [ascii_json(&text), json!({"t": ascii_json(&text)}).to_string(), text] {
            let out = redactor.redact_str(&text);
            let out: Value = serde_json::from_str(&out).map_err(|error| TestCaseError::fail(format!("{error}: {out}")))?;
            prop_assert!(same_shape(&out, &serde_json::from_str(&text).unwrap()));
        }
    }

    #[test]
    fn sanitised_text_is_harmless(text in "(\\PC|[\x00-\x1f\x7f-\u{9f}]|\x1b[\\[\\]P_^X]|[0-9;m`]|\u{202e}|\u{e0041}){0,40}") {
        let safe = sanitize(&text);
        prop_assert!(!safe.chars().any(|char| char.is_control() && !matches!(char, '\n' | '\t')));
        prop_assert!(!safe.chars().any(is_invisible));
        prop_assert_eq!(sanitize(&safe), safe.as_ref());
        if !text.contains(char::is_control) {
            let visible: String = text.chars().filter(|&char| !is_invisible(char)).collect();
            prop_assert_eq!(safe, visible);
        }
    }

    #[test]
    fn no_text_closes_its_fence(text in "[a`\n ]{0,30}") {
        let block = fenced(&text);
        let fence = &block[..block.len() - block.trim_start_matches('`').len()];
        prop_assert!(fence.len() >= 3 && !text.contains(fence) && block.ends_with(fence));
        let code = inline_code(&text);
        let run = |text: &str| text.len() - text.trim_start_matches('`').len();
        let length = run(&code);
        prop_assert!(!text.contains(&"`".repeat(length)));
        prop_assert_eq!(length, code.len() - code.trim_end_matches('`').len());
    }
}
