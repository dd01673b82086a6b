//! Rules between the keys of the fleet: which of the two URLs applies, and the order of its times.
//!
//! The file with the URL is read once, and a missing file fails only what needs the database. So the URL that
//! is used is also the one that is redacted, if the file changes while the program runs. No problem repeats
//! the URL.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::files;
use crate::keys::TextFormat;
use crate::problem::{ConfigError, Problem};
use crate::resolve::SourcedSetting;
use crate::settings::{SecretText, Settings};

const URL: &str = "database_url";
const URL_FILE: &str = "database_url_file";

/// Each time of the fleet is longer than the one before: otherwise a healthy worker would be cut off between
/// two heartbeats, or a worker would lose its tasks before it has stopped its agents.
const ASCENDING_TIMES: [&str; 3] = ["fleet_heartbeat_sec", "fleet_cutoff_sec", "fleet_lease_sec"];

/// The times that a worker without a connection needs until its agents have ended, and what their end needs
/// besides.
const STOP_TIMES: [&str; 3] = ["fleet_cutoff_sec", "interrupt_grace_sec", "terminate_grace_sec"];
const STOP_MARGIN_SEC: u64 = 10;

/// The file with the URL, and what was in it when it was read first.
#[derive(Clone, Debug, Default)]
pub(crate) struct UrlFile(OnceLock<(PathBuf, Result<SecretText, String>)>);

impl UrlFile {
    /// A flag may name another file than the one that was read.
    fn read(&self, path: &Path) -> Result<SecretText, String> {
        let (known, url) = self.0.get_or_init(|| (path.to_owned(), read_url(path)));
        if known == path { url.clone() } else { read_url(path) }
    }
}

/// The URL of the database: of key and file the one from the source with the higher precedence.
pub(crate) fn database_url(
    settings: &Settings,
    sourced: &[SourcedSetting],
    file: &UrlFile,
) -> Result<Option<SecretText>, ConfigError> {
    let find = |key: &str| sourced.iter().find(|setting| setting.key.name == key);
    let (Some(url_setting), Some(file_setting)) = (find(URL), find(URL_FILE)) else { return Ok(None) };
    let (of_url, of_file) = (url_setting.origin.source(), file_setting.origin.source());
    let error = |message: String| ConfigError { problems: vec![file_setting.problem(message)] };
    match (&settings.database_url, &settings.database_url_file) {
        (url, None) => Ok(url.clone()),
        (Some(_), Some(_)) if of_url == of_file => {
            Err(error(format!("`{URL}` is set there, too ({}); remove one of them", url_setting.origin)))
        }
        (Some(url), Some(_)) if of_url > of_file => Ok(Some(url.clone())),
        (_, Some(path)) => {
            let url = file.read(path).map_err(|message| error(format!("{}: {message}", path.display())))?;
            Ok(Some(url))
        }
    }
}

fn read_url(path: &Path) -> Result<SecretText, String> {
    let text = files::read_text(path).map_err(|error| error.to_string())?;
    let url = text.lines().next().unwrap_or_default().trim();
    if !TextFormat::DatabaseUrl.accepts(url) {
        return Err(format!("the first line must be {}", TextFormat::DatabaseUrl));
    }
    Ok(SecretText(url.to_owned()))
}

/// A problem is one of the value whose source has the higher precedence.
pub(crate) fn time_problems(sourced: &[SourcedSetting]) -> Vec<Problem> {
    let times = ASCENDING_TIMES.map(|key| sourced.iter().find(|setting| setting.key.name == key));
    let out_of_order = times.windows(2).filter_map(|pair| match pair {
        [Some(shorter), Some(longer)] if shorter.value.as_u64() >= longer.value.as_u64() => {
            Some((*shorter, *longer))
        }
        _ => None,
    });
    let to_problem = |(shorter, longer): (&SourcedSetting, &SourcedSetting)| {
        let is_longer_newer = longer.origin.source() > shorter.origin.source();
        let (wrong, other, rule) =
            if is_longer_newer { (longer, shorter, "more") } else { (shorter, longer, "less") };
        let message =
            format!("expected {rule} than `{}`, which is {} ({})", other.key.name, other.value, other.origin);
        Problem { value: Some(wrong.value.clone()), ..wrong.problem(message) }
    };
    out_of_order.map(to_problem).collect()
}

/// The problem with a lease that ends before a worker without a connection has stopped its agents: another
/// worker could run the same task then. Only workers need this, so the graces of other users are not
/// restricted.
pub(crate) fn lease_problem(sourced: &[SourcedSetting]) -> Option<Problem> {
    let find = |key: &str| sourced.iter().find(|setting| setting.key.name == key);
    let seconds = |setting: &SourcedSetting| setting.value.as_u64().unwrap_or_default();
    let lease = find("fleet_lease_sec")?;
    let times: Vec<&SourcedSetting> = STOP_TIMES.into_iter().filter_map(find).collect();
    let needed = times.iter().fold(STOP_MARGIN_SEC, |sum, setting| sum.saturating_add(seconds(setting)));
    if seconds(lease) >= needed {
        return None;
    }
    let names: Vec<String> =
        times.iter().map(|setting| format!("`{}` ({})", setting.key.name, setting.value)).collect();
    let sum = names.join(", ");
    let message =
        format!("a worker needs at least {needed}: {sum} and {STOP_MARGIN_SEC} s to stop its agents");
    Some(Problem { value: Some(lease.value.clone()), ..lease.problem(message) })
}
