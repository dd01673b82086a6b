//! Decides which variable names indicate a secret.
//!
//! A name is split into lower-case words at `_`, `-`, `.` and camelCase boundaries, and whole words are
//! compared: substrings would match `AUTHOR`, `KEYBOARD` and `MONKEY`. Digits at the end of a word are
//! ignored (`TOKEN2`). A `key` that is known to be public (`IDEMPOTENCY_KEY`, `SSH_PUBLIC_KEY`) is no secret.

const WORDS: &str = "accesskey accesstoken apikey apikeys apisecret apitoken auth authtoken bearer clientsecret cookie \
    cookies credential credentials dsn jwt key keys mysqlpwd oauth pass passphrase passwd password \
    passwords pat pgpassword privatekey secret secretkey secrets sshpass token tokens webhook";

/// Words that make a following `key` harmless.
const HARMLESS_KEYS: &[&str] =
    &["cache", "foreign", "idempotency", "partition", "primary", "public", "routing", "sort"];

/// Whether a variable of this name holds a secret; `extra` names match in any case.
pub fn is_secret_name<S: AsRef<str>>(name: &str, extra: &[S]) -> bool {
    if is_listed(name, extra) {
        return true;
    }
    let words = words(name);
    words.iter().enumerate().any(|(index, word)| {
        let before = index.checked_sub(1).map(|index| words[index].as_str());
        match word.as_str() {
            "key" | "keys" => !before.is_some_and(|before| HARMLESS_KEYS.contains(&before)),
            // `PWD` alone is the working directory of the shell; `DB_PWD` is a password.
            "pwd" => words.len() > 1,
            "string" => before == Some("connection"),
            word => WORDS.split(' ').any(|known| known == word),
        }
    })
}

/// Whether the user listed this variable, in any case.
pub fn is_listed<S: AsRef<str>>(name: &str, extra: &[S]) -> bool {
    extra.iter().any(|known| known.as_ref().eq_ignore_ascii_case(name))
}

fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    for part in name.split(['_', '-', '.']) {
        let chars: Vec<char> = part.chars().collect();
        let mut word = String::new();
        for (index, &char) in chars.iter().enumerate() {
            let after_lower = index > 0 && !chars[index - 1].is_uppercase();
            let before_lower = chars.get(index + 1).is_some_and(|next| next.is_lowercase());
            // `apiKey` breaks before K; `APIKey` breaks before the capital that starts a word.
            if char.is_uppercase() && (after_lower || (index > 0 && before_lower)) {
                words.push(std::mem::take(&mut word));
            }
            word.extend(char.to_lowercase());
        }
        words.push(word);
    }
    for word in &mut words {
        word.truncate(word.trim_end_matches(|char: char| char.is_ascii_digit()).len());
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::is_secret_name;

    const NONE: &[&str] = &[];

    #[test]
    fn whole_words_indicate_a_secret() {
        for name in [
            "GITHUB_TOKEN",
            "OPENAI_API_KEY",
            "apiKey",
            "APIKey",
            "db.password",
            "DB_PWD",
            "PGPASSWORD",
            "GH_PAT",
            "SENTRY_DSN",
            "npm-auth",
            "TOKEN2",
            "clientSecret",
            "SESSION_COOKIE",
            "AZURE_CONNECTION_STRING",
            "AWS_CREDENTIALS",
            "SSH_AUTH_SOCK",
        ] {
            assert!(is_secret_name(name, NONE), "{name}");
        }
    }

    #[test]
    fn parts_of_words_and_public_keys_indicate_no_secret() {
        for name in [
            "PWD",
            "OLDPWD",
            "AUTHOR",
            "GIT_AUTHOR_NAME",
            "KEYBOARD",
            "MONKEY",
            "IDEMPOTENCY_KEY",
            "idempotencyKey",
            "SSH_PUBLIC_KEY",
            "PATH",
            "TOKENIZERS_PARALLELISM",
            "COMPATIBILITY",
            "HOME",
            "",
        ] {
            assert!(!is_secret_name(name, NONE), "{name}");
        }
    }

    #[test]
    fn extra_names_match_in_any_case() {
        assert!(is_secret_name("Corp_Login", &["CORP_LOGIN"]));
        assert!(!is_secret_name("CORP_LOGINS", &["CORP_LOGIN"]));
    }
}
