//! The link that signs a browser in, as text and as a QR code.

use qrcode::QrCode;
use qrcode::render::unicode::Dense1x2;

/// Letters that need no encoding in a query.
fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "-._~/".contains(letter)
}

/// `path` is that of a page; `None` for the list of tasks.
pub(super) fn link(url: &str, code: &str, path: Option<&str>) -> String {
    let encode = |letter: char| match letter {
        _ if is_plain(letter) => letter.to_string(),
        _ => letter.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect(),
    };
    let target = path.map(|path| format!("&to={}", path.chars().map(encode).collect::<String>()));
    format!("{url}/?code={code}{}", target.unwrap_or_default())
}

/// For a terminal; `None` if the link is too long. The dark modules are printed as blanks of a dark terminal, with the
/// margin that readers need.
pub fn qr_code(link: &str) -> Option<String> {
    let code = QrCode::with_error_correction_level(link, qrcode::EcLevel::L).ok()?;
    Some(code.render::<Dense1x2>().dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_one_part_of_the_query() {
        assert_eq!(link("http://a:1", "c", None), "http://a:1/?code=c");
        let expected = "http://a:1/?code=c&to=/ui/tasks/T-1%3Fa%3D%C3%A4%26b";
        assert_eq!(link("http://a:1", "c", Some("/ui/tasks/T-1?a=ä&b")), expected);
    }
}
