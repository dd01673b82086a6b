//! The URL and the body of a webhook request in each format: our own JSON, or what a service for people reads.

use delegator_domain::notification::WebhookFormat;
use serde_json::json;

use crate::SendError;
use crate::notification::{Notification, Urgency};
use crate::settings::Webhook;
use crate::text::escape_markup;

/// Discord, which is compatible with Slack, refuses a text of more than 2,000 characters.
const MAX_SLACK_CHARS: usize = 1_990;
/// ntfy turns a longer message into an attachment.
const MAX_NTFY_BYTES: usize = 4_000;
/// Telegram counts UTF-16 units, and refuses a longer text.
const MAX_TELEGRAM_UNITS: usize = 4_096;

pub(crate) struct WebhookRequest {
    pub(crate) url: String,
    pub(crate) body: Vec<u8>,
}

pub(crate) fn request(webhook: &Webhook, notification: &Notification) -> Result<WebhookRequest, SendError> {
    check_webhook_url(webhook.format, &webhook.url).map_err(SendError::new)?;
    let Notification { title, text, .. } = notification;
    let mut url = webhook.url.clone();
    let body = match webhook.format {
        WebhookFormat::Json => return Ok(WebhookRequest { url, body: notification.to_json()? }),
        WebhookFormat::Slack => {
            let title = escape_slack(title);
            let length = |letter: char| escape_slack(letter.encode_utf8(&mut [0; 4])).chars().count();
            let max = MAX_SLACK_CHARS.saturating_sub(title.chars().count());
            json!({"text": format!("*{title}*\n{}", escape_slack(&without_middle(text, max, length)))})
        }
        WebhookFormat::Ntfy => {
            // A topic gets headers, which cannot have all characters; the root of the server gets JSON.
            let (server, topic, query) = ntfy_parts(&webhook.url);
            url = format!("{server}/{query}");
            let (priority, tag) = match notification.urgency() {
                Urgency::NeedsPerson => (4, "question"),
                Urgency::Failed => (4, "warning"),
                Urgency::Normal => (3, "white_check_mark"),
            };
            let message = without_middle(text, MAX_NTFY_BYTES, char::len_utf8);
            let mut body = json!({"topic": topic, "title": title, "message": message, "priority": priority, "tags": [tag]});
            // What a tap on the notification opens.
            if let Some(link) = &notification.link {
                body["click"] = link.as_str().into();
            }
            body
        }
        WebhookFormat::Telegram => {
            let text = without_middle(&format!("{title}\n{text}"), MAX_TELEGRAM_UNITS, char::len_utf16);
            json!({"text": text, "disable_web_page_preview": true})
        }
    };
    Ok(WebhookRequest { url, body: body.to_string().into_bytes() })
}

/// Why the URL is none of a service with this format; the reason does not contain it.
pub fn check_webhook_url(format: WebhookFormat, url: &str) -> Result<(), String> {
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    match format {
        WebhookFormat::Ntfy if !is_ntfy_url(url) => {
            Err("the URL names no topic of ntfy, as https://ntfy.sh/TOPIC does".to_owned())
        }
        WebhookFormat::Telegram
            if !path.ends_with("/sendMessage")
                || !query.split('&').any(|part| part.len() > 8 && part.starts_with("chat_id=")) =>
        {
            Err("the URL is none of Telegram: https://api.telegram.org/botTOKEN/sendMessage?chat_id=ID"
                .to_owned())
        }
        _ => Ok(()),
    }
}

/// The server, the topic, and the query with its question mark.
fn ntfy_parts(url: &str) -> (&str, &str, &str) {
    let (path, query) = url.split_at(url.find('?').unwrap_or(url.len()));
    let (server, topic) = path.trim_end_matches('/').rsplit_once('/').unwrap_or((path, ""));
    (server, topic, query)
}

fn is_ntfy_url(url: &str) -> bool {
    let (server, topic, _) = ntfy_parts(url);
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    server.contains("://") && !topic.is_empty() && topic.chars().all(is_allowed)
}

/// Discord would notify all readers of a channel because an agent wrote `@everyone`.
fn escape_slack(text: &str) -> String {
    escape_markup(text).replace('@', "@\u{200b}")
}

/// A text of at most this length. Its end stays, because it has the command that answers.
fn without_middle(text: &str, max: usize, length: impl Fn(char) -> usize) -> String {
    const OMISSION: &str = "\n…\n";
    if text.chars().map(&length).sum::<usize>() <= max {
        return text.to_owned();
    }
    let fitting = |letters: &mut dyn Iterator<Item = char>, max: usize| -> usize {
        let mut left = max;
        let fits = |letter: &char| {
            let remaining = left.checked_sub(length(*letter));
            left = remaining.unwrap_or(left);
            remaining.is_some()
        };
        letters.take_while(fits).map(char::len_utf8).sum()
    };
    let end = fitting(&mut text.chars().rev(), max / 3);
    let start = fitting(&mut text.chars(), (max - max / 3).saturating_sub(OMISSION.len()));
    format!("{}{OMISSION}{}", &text[..start], &text[text.len() - end..])
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::live::tests::asking_task;
    use crate::notification::tests::{ended_task, settings};

    fn sent(format: WebhookFormat, url: &str, notification: &Notification) -> (String, Value) {
        let webhook = Webhook { url: url.to_owned(), secret_file: None, format };
        let WebhookRequest { url, body } = request(&webhook, notification).unwrap();
        (url, serde_json::from_slice(&body).unwrap())
    }

    fn end() -> Notification {
        let end = Notification::new(&ended_task(), 1, &settings(Some("<{title}> & co\n{summary} ä")));
        Notification { text: format!("{} <b>", end.text), ..end }
    }

    #[test]
    fn slack_gets_a_text_without_markup() {
        let (url, body) = sent(WebhookFormat::Slack, "https://hooks.example/T0", &end());
        let text = "*&lt;fix the test&gt; &amp; co*\nFailed: the agent exited ä &lt;b&gt;";
        assert_eq!((url.as_str(), body), ("https://hooks.example/T0", json!({ "text": text })));
        for letters in ["&@", "語"] {
            let text = format!("@everyone {}<command>", letters.repeat(3_000));
            let long = Notification { title: "@here <".repeat(28), text, ..end() };
            let (_, body) = sent(WebhookFormat::Slack, "https://hooks.example/T0", &long);
            let text = body["text"].as_str().unwrap();
            assert!((1_950..2_000).contains(&text.chars().count()), "{}", text.chars().count());
            assert!(!text.contains("@e") && !text.contains("@h"), "{text}");
            assert!(text.contains("@\u{200b}everyone") && text.ends_with("&lt;command&gt;"), "{text}");
        }
    }

    #[test]
    fn ntfy_gets_json_at_the_root_of_its_server() {
        let expected = json!({
            "topic": "mine", "title": "<fix the test> & co", "message": "Failed: the agent exited ä <b>",
            "priority": 4, "tags": ["warning"],
        });
        let (url, body) = sent(WebhookFormat::Ntfy, "https://ntfy.example/sub/mine?auth=QmVh", &end());
        assert_eq!((url.as_str(), body), ("https://ntfy.example/sub/?auth=QmVh", expected));
        let question = Notification::of_need(&asking_task(), 1, &settings(None), 0);
        let (_, body) = sent(WebhookFormat::Ntfy, "https://ntfy.sh/mine", &question);
        assert_eq!((&body["tags"], &body["priority"]), (&json!(["question"]), &json!(4)));
        let long = Notification { text: "ä".repeat(4_000) + "command", ..end() };
        let (_, body) = sent(
            WebhookFormat::Ntfy,
            "https://ntfy.sh/mine",
            &question.clone().with_link("http://127.1.2.3:7788"),
        );
        assert_eq!(body["click"], "http://127.1.2.3:7788/ui/tasks/T-local-7777777777", "{body}");
        let (_, body) = sent(WebhookFormat::Ntfy, "https://ntfy.sh/mine", &long);
        let message = body["message"].as_str().unwrap();
        assert!((MAX_NTFY_BYTES - 3..=MAX_NTFY_BYTES).contains(&message.len()), "{}", message.len());
        assert!(message.starts_with('ä') && message.ends_with("command"), "{message}");
    }

    #[test]
    fn telegram_gets_a_text_of_the_length_that_it_takes() {
        let url = "https://api.telegram.org/bot1:secret/sendMessage?chat_id=-12";
        let (to, body) = sent(WebhookFormat::Telegram, url, &end());
        let text = "<fix the test> & co\nFailed: the agent exited ä <b>";
        assert_eq!((to.as_str(), body), (url, json!({"text": text, "disable_web_page_preview": true})));
        let long = Notification { text: "😀".repeat(4_000), ..end() };
        let (_, body) = sent(WebhookFormat::Telegram, url, &long);
        let units = body["text"].as_str().unwrap().encode_utf16().count();
        assert!((MAX_TELEGRAM_UNITS - 5..=MAX_TELEGRAM_UNITS).contains(&units), "{units}");
    }

    #[test]
    fn a_url_of_another_service_is_refused_without_showing_it() {
        for (format, url) in [
            (WebhookFormat::Ntfy, "https://private.example"),
            (WebhookFormat::Ntfy, "https://private.example/?auth=x"),
            (WebhookFormat::Ntfy, "https://ntfy.sh/private topic"),
            (WebhookFormat::Telegram, "https://private.example/botx/sendMessage"),
            (WebhookFormat::Telegram, "https://private.example/botx/sendMessage?chat_id="),
            (WebhookFormat::Telegram, "https://private.example/botx?chat_id=1"),
        ] {
            let problem = check_webhook_url(format, url).unwrap_err();
            assert!(!problem.contains("private"), "{problem}");
        }
        assert_eq!(check_webhook_url(WebhookFormat::Json, "https://private.example"), Ok(()));
    }
}
