//! The bearer token of the HTTP server: created on first use, stored in a file, compared in constant time.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use delegator_registry::make_private_path;

use crate::error::{AppError, ErrorCode};

#[derive(Clone)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

/// A shorter token could be guessed.
const MIN_LENGTH: usize = 16;
const BEARER: &[u8] = b"bearer ";

impl Token {
    /// The token in the file. If there is no file, it is created with a new token.
    pub fn load_or_create(path: &Path) -> Result<Token, AppError> {
        match Token::load(path)? {
            Some(token) => Ok(token),
            None => Token::create(path),
        }
    }

    fn load(path: &Path) -> Result<Option<Token>, AppError> {
        let unreadable = |error: io::Error| token_file_error(path, &error.to_string());
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(unreadable)?,
        };
        if fs::metadata(path).map_err(unreadable)?.mode() & 0o077 != 0 {
            return Err(token_file_error(path, "others may read it; run chmod 600 on it"));
        }
        let text = text.trim();
        if text.len() < MIN_LENGTH || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(token_file_error(
                path,
                "it does not contain a token of at least 16 printable ASCII characters",
            ));
        }
        Ok(Some(Token(text.to_owned())))
    }

    fn create(path: &Path) -> Result<Token, AppError> {
        let write_new = || -> io::Result<String> {
            let text = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
            if let Some(parent) = path.parent() {
                // Created with its final mode: this may be the state directory itself.
                make_private_path(parent)?;
            }
            let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
            writeln!(file, "{text}")?;
            file.sync_all()?;
            Ok(text)
        };
        match write_new() {
            // Another server has just created the file: use its token. If the file still does not exist, the
            // path is a dangling symlink.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Token::load(path)?
                .ok_or_else(|| token_file_error(path, "it is a symlink to a file that does not exist")),
            written => written.map(Token).map_err(|error| token_file_error(path, &error.to_string())),
        }
    }

    /// Whether an `Authorization` header contains the token. Compares in constant time.
    pub fn admits(&self, header: &[u8]) -> bool {
        let Some((scheme, given)) = header.split_at_checked(BEARER.len()) else { return false };
        let ours = self.0.as_bytes();
        let differs = ours.iter().zip(given.iter().chain(std::iter::repeat(&0)));
        let difference = differs.fold(0, |sum, (a, b)| sum | (a ^ b));
        scheme.eq_ignore_ascii_case(BEARER) && difference == 0 && given.len() == ours.len()
    }
}

fn token_file_error(path: &Path, problem: &str) -> AppError {
    AppError::new(
        ErrorCode::ConfigInvalid,
        format!("The token file {} cannot be used: {problem}.", path.display()),
    )
    .context("path", path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_created_once_with_private_mode() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/token");
        let token = Token::load_or_create(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let directory = fs::metadata(path.parent().unwrap()).unwrap();
        assert_eq!(directory.mode() & 0o777, 0o700, "a new directory is private");
        let header = format!("Bearer {}", token.0);
        assert!(Token::load_or_create(&path).unwrap().admits(header.as_bytes()));
        for wrong in [
            "",
            "Bearer ",
            "Basic x",
            &header[..header.len() - 1],
            &format!("{header}x"),
            &header.to_uppercase(),
        ] {
            assert!(!token.admits(wrong.as_bytes()), "{wrong}");
        }
    }

    #[test]
    fn readable_or_short_tokens_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        fs::write(&path, "0123456789abcdef0123").unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        assert!(Token::load_or_create(&path).unwrap_err().message.contains("others"));
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        assert!(Token::load_or_create(&path).is_ok());
        fs::write(&path, "short").unwrap();
        assert!(Token::load_or_create(&path).is_err());
    }

    #[test]
    fn dangling_symlink_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        std::os::unix::fs::symlink(dir.path().join("nowhere"), &path).unwrap();
        let refused = Token::load_or_create(&path).unwrap_err();
        assert_eq!(refused.code, ErrorCode::ConfigInvalid);
        assert!(refused.message.contains("symlink"), "{}", refused.message);
    }
}
