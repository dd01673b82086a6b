//! What an API error is about: the line's own names for it first, then the HTTP status.

use crate::event::ErrorCode;
use crate::json::Object;

/// The code of an error that a line reports; `None` if it reports none, or one that decides nothing.
pub(super) fn code(line: &Object<'_>) -> Option<ErrorCode> {
    let status = line.integer("api_error_status");
    let http_status = status.and_then(|status| u16::try_from(status).ok());
    let named = ["api_error", "error", "api_error_type"].into_iter().find_map(|key| {
        let name = line.text(key)?;
        named_code(name.simple()?, http_status)
    });
    named.or_else(|| {
        Some(match http_status? {
            401 | 403 => ErrorCode::Unauthorized,
            429 => ErrorCode::RateLimit,
            529 => ErrorCode::Overloaded,
            500.. => ErrorCode::Connection { http_status },
            _ => return None,
        })
    })
}

const USAGE_LIMIT: &str =
    "usage_limit_reached billing_error model_requires_usage_credits long_context_credits_required";
const UNAUTHORIZED: &str = "authentication_failed authentication_error permission_error oauth_org_not_allowed \
    account_on_hold verification_required cloud_credential_error stored_login_refused provider_credentials \
    gateway_signin_required gateway_session_expired api_key_auth_disabled org_disabled_credential \
    invalid_credential_header";
const CONNECTION: &str = "server_error api_error timeout_error connection_failed stream_idle_timeout \
    no_response tls_untrusted_ca network_edge_blocked gateway_content_type";

fn named_code(name: &str, http_status: Option<u16>) -> Option<ErrorCode> {
    let is_in = |names: &str| names.split(' ').any(|known| known == name);
    Some(match name {
        "rate_limit" | "rate_limit_error" => ErrorCode::RateLimit,
        "overloaded" | "overloaded_error" => ErrorCode::Overloaded,
        "server_error" if http_status == Some(529) => ErrorCode::Overloaded,
        "model_not_found" => ErrorCode::ModelNotFound,
        _ if is_in(USAGE_LIMIT) => ErrorCode::UsageLimit,
        _ if is_in(UNAUTHORIZED) => ErrorCode::Unauthorized,
        _ if is_in(CONNECTION) => ErrorCode::Connection { http_status },
        _ => return None,
    })
}
