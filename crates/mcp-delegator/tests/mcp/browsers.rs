//! How browsers sign in to the pages, and what the server refuses them: the attacks listed in docs/reliability.md.

use std::fs::File;
use std::io::{Read, Write};
use std::time::{Duration, SystemTime};

use delegator_testkit::program::read_text;
use delegator_testkit::stage::{Stage, successful_turn};
use serde_json::Value;

use crate::PROGRAM;
use crate::http_client::{HttpResponse, HttpServer};

struct Browser<'a> {
    server: &'a HttpServer,
    cookie: String,
}

fn host(server: &HttpServer) -> (String, String) {
    ("Host".to_owned(), format!("127.0.0.1:{}", server.port))
}

fn get(server: &HttpServer, path: &str, headers: &[(&str, &str)]) -> HttpResponse {
    let mut all = vec![host(server)];
    all.extend(headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    server.request("GET", path, &all, "")
}

/// The code of a new link.
fn code(stage: &Stage, args: &[&str]) -> String {
    let created = stage.run_json(&[&["dashboard", "--no-open"], args].concat());
    created["data"]["link"].as_str().unwrap().rsplit_once("code=").unwrap().1.to_owned()
}

fn secret(response: &HttpResponse) -> Option<&str> {
    response.header("Set-Cookie")?.split(['=', ';']).nth(1)
}

impl<'a> Browser<'a> {
    fn sign_in(stage: &Stage, server: &'a HttpServer, args: &[&str]) -> Browser<'a> {
        let response = get(server, &format!("/?code={}", code(stage, args)), &[]);
        assert_eq!((response.status, response.header("Location")), (303, Some("/")), "{response:?}");
        let cookie = format!("mcp-delegator-{}={}", server.port, secret(&response).unwrap());
        Browser { server, cookie }
    }

    fn get(&self, path: &str) -> HttpResponse {
        get(self.server, path, &[("Cookie", &self.cookie)])
    }

    fn token(&self) -> String {
        let session: Value = serde_json::from_str(&self.get("/api/v1/session").body).unwrap();
        session["data"]["csrf_token"].as_str().unwrap().to_owned()
    }

    /// Marks all results as read, with these headers besides the cookie.
    fn post(&self, path: &str, headers: &[(&str, &str)], body: &str) -> HttpResponse {
        let mut all = vec![host(self.server), ("Cookie".to_owned(), self.cookie.clone())];
        all.push(("Content-Type".to_owned(), "application/json".to_owned()));
        all.extend(headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        self.server.request("POST", path, &all, body)
    }
}

fn stage_with_task() -> (Stage, String) {
    let stage = Stage::with_script(PROGRAM, successful_turn(&[]));
    let id = stage.exec(&["--skip-git-repo-check"]);
    stage.wait(&id);
    (stage, id)
}

fn set_age(directory: &std::path::Path, age: Duration) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let now = SystemTime::from(jiff::Timestamp::now());
        File::open(entry.unwrap().path()).unwrap().set_modified(now - age).unwrap();
    }
}

#[test]
fn a_link_signs_one_browser_in_within_a_minute() {
    let (stage, _) = stage_with_task();
    let server = HttpServer::start(&stage);
    let code = code(&stage, &[]);
    let link = format!("/?code={code}");
    // A request that only looks at the link does not use it up.
    let looked = server.request("HEAD", &link, &[host(&server)], "");
    assert_eq!(looked.status, 405, "{looked:?}");
    assert_eq!(get(&server, &link, &[("Sec-Purpose", "prefetch;prerender")]).status, 405);
    // An attacker's cookie is not made valid by it: the session has a secret of its own.
    let planted = format!("mcp-delegator-{}=planted", server.port);
    let signed_in = get(&server, &link, &[("Cookie", &planted)]);
    assert_eq!(signed_in.status, 303, "{signed_in:?}");
    let cookie = signed_in.header("Set-Cookie").unwrap();
    assert!(cookie.ends_with("; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict"), "{cookie}");
    assert_eq!(get(&server, "/", &[("Cookie", &planted)]).status, 401);
    assert_eq!(get(&server, &link, &[]).status, 403, "a link is used once");
    let known = format!("mcp-delegator-{}={}", server.port, secret(&signed_in).unwrap());
    assert_eq!(get(&server, &link, &[("Cookie", &known)]).status, 303, "a signed-in browser gets its page");
    // Neither code nor secret is stored, and both expire.
    let dashboard = stage.world.home().join("state/dashboard");
    let stored = std::fs::read_dir(dashboard.join("sessions")).unwrap().next().unwrap().unwrap();
    assert!(!stored.path().to_string_lossy().contains(secret(&signed_in).unwrap()));
    let late = self::code(&stage, &[]);
    set_age(&dashboard.join("codes"), Duration::from_secs(61));
    assert_eq!(get(&server, &format!("/?code={late}"), &[]).status, 403);
    assert_eq!(get(&server, "/", &[("Cookie", &known)]).status, 200);
    set_age(&dashboard.join("sessions"), Duration::from_secs(12 * 60 * 60 + 1));
    assert_eq!(get(&server, "/", &[("Cookie", &known)]).status, 401);
    // Codes cannot be tried one after the other.
    let tried: Vec<u16> = (0..12).map(|_| get(&server, "/?code=guess", &[]).status).collect();
    assert_eq!((tried[0], tried[11]), (403, 429), "{tried:?}");
    let audit = read_text(&stage.world.home().join("state/audit.jsonl"));
    assert!(audit.contains(r#""command":"dashboard.sign_in""#) && !audit.contains(&code), "{audit}");
}

#[test]
fn other_sites_and_hosts_reach_nothing() {
    let (stage, id) = stage_with_task();
    let server = HttpServer::start(&stage);
    let browser = Browser::sign_in(&stage, &server, &[]);
    let own_host = host(&server).1;
    for path in ["/", "/ui/tasks", &format!("/ui/tasks/{id}"), "/?code=x", "/sw.js", "/api/v1/tasks"] {
        for (name, value) in
            [("Host", "evil.example"), ("Origin", "https://evil.example"), ("Origin", "null")]
        {
            let mut headers =
                vec![("Cookie".to_owned(), browser.cookie.clone()), (name.to_owned(), value.to_owned())];
            headers.extend((name != "Host").then(|| host(&server)));
            let response = server.request("GET", path, &headers, "");
            assert_eq!(response.status, 403, "{path} {name} {value}: {response:?}");
        }
    }
    // A write needs the own origin and the token of the session.
    let (token, origin) = (browser.token(), format!("http://{own_host}"));
    let path = format!("/api/v1/tasks/{id}/read");
    for (headers, status) in [
        (vec![], 403),
        (vec![("Origin", origin.as_str())], 403),
        (vec![("X-CSRF-Token", token.as_str())], 403),
        (vec![("Origin", origin.as_str()), ("X-CSRF-Token", "wrong")], 403),
        (vec![("Origin", "http://localhost:1"), ("X-CSRF-Token", token.as_str())], 403),
        (vec![("Origin", origin.as_str()), ("X-CSRF-Token", token.as_str()), ("X-CSRF-Token", "b")], 403),
        (vec![("Origin", origin.as_str()), ("X-CSRF-Token", token.as_str())], 200),
    ] {
        let response = browser.post(&path, &headers, "{}");
        assert_eq!(response.status, status, "{headers:?}: {response:?}");
    }
    // A form of another site cannot send JSON, a session opens no MCP, and two cookies are none.
    assert_eq!(browser.get("/mcp").status, 401);
    let twice = format!("{}; {}", browser.cookie, browser.cookie);
    assert_eq!(get(&server, "/", &[("Cookie", &twice)]).status, 401);
    // A cookie that a program at another port has planted does not lock the user out, and pages of that port get nothing.
    let planted = format!("mcp-delegator-{}=planted; {}", server.port, browser.cookie);
    assert_eq!(get(&server, "/", &[("Cookie", &planted)]).status, 200);
    let of_other_port = [("Cookie", browser.cookie.as_str()), ("Sec-Fetch-Site", "same-site")];
    assert_eq!(get(&server, "/", &of_other_port).status, 401);
    let page = browser.get(&format!("/ui/tasks/{id}"));
    assert_eq!(page.status, 200);
    let policy = page.header("Content-Security-Policy").unwrap();
    for part in ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "script-src 'self'"] {
        assert!(policy.contains(part) && !policy.contains("unsafe"), "{policy}");
    }
    assert_eq!(page.header("Referrer-Policy"), Some("no-referrer"));
    // A navigation from another site, such as a link in a notification, comes without the cookie: the page loads itself again.
    let navigation = [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")];
    let bounced = get(&server, &format!("/ui/tasks/{id}?a=b"), &navigation);
    assert!(bounced.body.contains(&format!("0; url=/ui/tasks/{id}?a=b")), "{bounced:?}");
    let hostile = get(&server, "/ui/tasks/%22%3E%3Cscript%3E?a=\"><script>", &navigation);
    assert!(!hostile.body.contains("<script>"), "{hostile:?}");
}

#[test]
fn paths_bodies_and_scopes_are_checked() {
    let (stage, id) = stage_with_task();
    let server = HttpServer::start(&stage);
    let browser = Browser::sign_in(&stage, &server, &["--scope", "answer"]);
    for path in [
        "/ui/../api/v1/tasks",
        "/ui/assets/../../http-token",
        "/ui/assets/%2e%2e/%2e%2e/http-token",
        "/ui/assets//etc/passwd",
        "/ui/tasks/../../../etc/passwd",
        "/ui/tasks/%00",
        "/ui/tasks/T-local-0000000000/diff?file=../../etc/passwd",
        "//evil.example/ui/tasks",
    ] {
        let response = browser.get(path);
        assert!(matches!(response.status, 400 | 403 | 404), "{path}: {response:?}");
        assert!(!response.body.contains("root:"), "{path}: {response:?}");
    }
    for (path, status) in
        [("/ui", 200), ("/ui/tasks/new", 400), (&format!("/ui/tasks/{id}/check/discard"), 404)]
    {
        assert_eq!(browser.get(path).status, status, "{path}");
    }
    let (token, origin) = (browser.token(), format!("http://{}", host(&server).1));
    let headers = [("Origin", origin.as_str()), ("X-CSRF-Token", token.as_str())];
    // It is refused by its length, before it is sent.
    let mut stream = server.connect();
    let head = format!(
        "POST /api/v1/tasks/{id}/send HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\nOrigin: {origin}\r\nX-CSRF-Token: {token}\r\n\
         Content-Type: application/json\r\nContent-Length: 5000000\r\n\r\n",
        host(&server).1,
        browser.cookie
    );
    stream.write_all(head.as_bytes()).unwrap();
    assert_eq!(HttpResponse::read(stream).status, 413);
    assert_eq!(
        browser.post(&format!("/api/v1/tasks/{id}/retry"), &headers, "{}").status,
        403,
        "the scope is answer"
    );
    assert_eq!(browser.post("/ui/tasks", &headers, "{}").status, 405);
    let long = "x".repeat(300_000);
    assert_eq!(get(&server, "/", &[("Cookie", &browser.cookie), ("X-Long", &long)]).status, 431);
    // The session ends where the user ends it.
    assert_eq!(browser.post("/api/v1/session/end", &headers, "").status, 200);
    assert_eq!(browser.get("/").status, 401);
}

#[test]
fn a_session_that_ends_during_a_request_does_nothing_more() {
    let (stage, _) = stage_with_task();
    let server = HttpServer::start(&stage);
    let browser = Browser::sign_in(&stage, &server, &[]);
    let (token, own_host) = (browser.token(), host(&server).1);
    let body = r#"{"task":"never","mode":"read-only"}"#;
    let mut stream = server.connect();
    let head = format!(
        "POST /api/v1/tasks HTTP/1.1\r\nHost: {own_host}\r\nCookie: {}\r\nOrigin: http://{own_host}\r\nX-CSRF-Token: {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\r\n",
        browser.cookie,
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // The server asks for the body after it has checked the session.
    let mut asked = [0; 25];
    stream.read_exact(&mut asked).unwrap();
    assert_eq!(&asked, b"HTTP/1.1 100 Continue\r\n\r\n");
    stage.run_json(&["dashboard", "sessions", "--revoke-all"]);
    stream.write_all(body.as_bytes()).unwrap();
    assert_eq!(HttpResponse::read(stream).status, 401);
    assert!(!stage.run_json(&["history"]).to_string().contains("never"));
}

#[test]
fn a_browser_that_signs_in_again_loses_its_earlier_session() {
    let (stage, _) = stage_with_task();
    let server = HttpServer::start(&stage);
    let first = Browser::sign_in(&stage, &server, &[]);
    let again = get(&server, &format!("/?code={}", code(&stage, &[])), &[("Cookie", &first.cookie)]);
    assert_eq!(again.status, 303, "{again:?}");
    assert_eq!(first.get("/").status, 401);
    let listed = stage.run_json(&["dashboard", "sessions"]);
    assert_eq!(listed["data"]["sessions"].as_array().unwrap().len(), 1, "{listed}");
}

#[test]
fn who_may_only_read_does_not_use_up_the_actions_of_others() {
    let (stage, id) = stage_with_task();
    let server = HttpServer::start(&stage);
    let reader = Browser::sign_in(&stage, &server, &["--scope", "read"]);
    let owner = Browser::sign_in(&stage, &server, &[]);
    let origin = format!("http://{}", host(&server).1);
    let path = format!("/api/v1/tasks/{id}/read");
    let act = |browser: &Browser<'_>, token: &str| {
        browser.post(&path, &[("Origin", origin.as_str()), ("X-CSRF-Token", token)], "{}").status
    };
    let (of_reader, of_owner) = (reader.token(), owner.token());
    let statuses: Vec<u16> = (0..2_000)
        .map(|_| act(&reader, &of_reader))
        .scan(false, |has_ended, status| {
            let before = std::mem::replace(has_ended, status == 429);
            (!before).then_some(status)
        })
        .collect();
    assert_eq!((statuses[0], *statuses.last().unwrap()), (403, 429));
    assert_eq!(act(&owner, &of_owner), 200);
}

/// A server that other machines reach without TLS lets no browser sign in.
#[test]
fn pages_on_other_addresses_need_tls_or_an_explicit_word() {
    let (stage, _) = stage_with_task();
    let token = stage.root().join("token");
    std::fs::write(&token, "0123456789abcdef0123").unwrap();
    std::fs::set_permissions(&token, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let refused = stage.world.run(["dashboard", "--host", "0.0.0.0", "--no-open", "--port", "0"]);
    assert_eq!(refused.json()["error"]["code"], "POLICY_BLOCKED", "{refused:?}");
    let unencrypted = ["dashboard", "--public-url", "http://192.0.2.1:7788", "--no-open"];
    let refused = stage.world.run(unencrypted);
    assert_eq!(refused.json()["error"]["code"], "POLICY_BLOCKED", "{refused:?}");
    for (args, field) in [
        (["--host", "example"].as_slice(), "host"),
        (&["--tls-cert", "/cert"], "tls_cert"),
        (&["--public-url", "example.com/path"], "public_url"),
        (&["--public-url", "https://example.com?a=b"], "public_url"),
    ] {
        let run = stage.world.run([["dashboard", "--no-open"].as_slice(), args].concat());
        let problems = run.json()["error"].to_string() + &run.json()["meta"].to_string();
        assert!(run.exit == Some(2) && problems.contains(field), "{run:?}");
    }
}
