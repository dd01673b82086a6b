//! Which paths belong to the dashboard.

/// What a browser expects at the root: a service worker controls what is below its own path.
pub(super) const SERVICE_WORKER: &str = "/sw.js";
pub(super) const MANIFEST: &str = "/manifest.webmanifest";

/// Whether requests to this path are for the dashboard.
pub fn serves(path: &str) -> bool {
    matches!(path, "/" | "/ui" | SERVICE_WORKER | MANIFEST) || path.starts_with("/ui/")
}
