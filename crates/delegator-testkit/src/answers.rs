//! Validates every answer that a test reads against the schemas that the program publishes and, for an error, against the
//! exit codes that it declares; and counts the answers.
//!
//! The schemas come from the program itself (`schema NAME`), so both a wrong answer and a wrong schema are found. They are
//! cached beside the program, per build. Each answer appends one line to `answers.log` in the same directory; `just
//! count-answers` sums them up. A violation fails the test.

#![expect(clippy::disallowed_methods, reason = "tests start the program they test")]

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::UNIX_EPOCH;

use jsonschema::Validator;
use serde_json::{Map, Value};

use crate::declared_errors::undeclared_error;
use crate::remedies;

static PUBLISHED: OnceLock<PublishedSchemas> = OnceLock::new();

/// From now on, answers are validated against the schemas that this program publishes.
pub(crate) fn validate_against(program: &Path) {
    PUBLISHED.get_or_init(|| PublishedSchemas {
        program: program.to_owned(),
        cache: OnceLock::new(),
        inputs: OnceLock::new(),
        validators: Mutex::default(),
    });
}

/// Checks what a test has read. In JSON, one document or one value per line: the answers are valid, see [`check`]. In text
/// for people: the program accepts the commands that it suggests.
pub fn check_text(text: &str) {
    let is_for_people = !text.trim_start().starts_with(['{', '[']);
    if let Some(published) = PUBLISHED.get().filter(|_| is_for_people) {
        published.check_commands(&remedies::commands_in(text));
        // Hints about a configuration name its keys.
        if !text.contains("config") {
            published.check_hints(&remedies::hints_in(text));
        }
    }
    // Most of a long text are events of agents; parsing all of them would take long.
    let may_be_answer = |text: &&str| ENVELOPE_KEYS.iter().any(|key| text.contains(key));
    let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
    match Some(text).filter(may_be_answer).and_then(parse) {
        Some(document) => check(&document),
        None => text.lines().filter(may_be_answer).filter_map(parse).for_each(|value| check(&value)),
    }
}

/// One key of each envelope that the others do not have.
const ENVELOPE_KEYS: [&str; 3] = ["\"warnings\"", "\"metadata\"", "\"tool_category\""];

/// Validates all answers in a value, which is one itself or a message with answers in it.
pub fn check(value: &Value) {
    match (envelope_of(value), value) {
        (Some((envelope, command)), _) => {
            if let Some(published) = PUBLISHED.get() {
                published.check_answer(envelope, &command, value);
            }
        }
        (None, Value::Object(object)) => object.values().for_each(check),
        (None, Value::Array(items)) => items.iter().for_each(check),
        (None, _) => {}
    }
}

/// The envelope and the command of an answer, recognised by the keys of the envelope.
fn envelope_of(value: &Value) -> Option<(&'static str, String)> {
    let has = |key: &str| value.get(key).is_some();
    let (envelope, command) = match () {
        () if has("ok") && has("warnings") => ("cli", value.pointer("/meta/command")?),
        () if has("success") && has("metadata") => ("standard", value.get("command")?),
        () if has("schema_id") && has("tool_category") => ("tool", value.get("tool")?),
        () => return None,
    };
    Some((envelope, command.as_str()?.to_owned()))
}

/// The schemas of one build of the program.
#[derive(Debug)]
struct PublishedSchemas {
    program: PathBuf,
    cache: OnceLock<PathBuf>,
    /// Names of inputs that are written differently as a flag.
    inputs: OnceLock<Vec<String>>,
    /// By name of the schema and part of it.
    validators: Mutex<BTreeMap<(String, &'static str), Arc<Validator>>>,
}

/// The complete schema, as opposed to the output of a command in one envelope.
const WHOLE: &str = "";

impl PublishedSchemas {
    fn check_answer(&self, envelope: &'static str, command: &str, answer: &Value) {
        let name = self.schema_name(command);
        let mut violations = self.violations(&name, envelope, answer);
        if let Some(id) = answer["schema_id"].as_str() {
            violations.extend(self.violations(id, WHOLE, answer));
        }
        violations.extend(self.undeclared_error(&name, answer));
        self.check_commands(&remedies::commands_in_answer(answer));
        // The tool envelope belongs to both surfaces. Hints about a configuration name its keys.
        if envelope != "tool" && !answer.to_string().contains("CONFIG") {
            self.check_hints(&remedies::hints_in_answer(answer));
        }
        let is_valid = violations.is_empty();
        self.log(if is_valid { "valid" } else { "violation" }, envelope, &name);
        assert!(is_valid, "the {envelope} answer of {name} violates its schema: {violations:#?}\n{answer}");
    }

    /// Every suggested command must be one that the program accepts. With `--schema` it is parsed but not run.
    fn check_commands(&self, commands: &[String]) {
        for command in commands {
            let cache = self.cache.get_or_init(|| cache_of(&self.program));
            let file = cache.join(format!("accepted-{:x}", hash_of(&without_task_ids(command))));
            if file.exists() {
                continue;
            }
            let arguments = command.strip_prefix("mcp-delegator ").unwrap_or(command);
            // `--fields` would select from the schema.
            let arguments = arguments.split(" --fields").next().unwrap_or(arguments);
            let script = format!("'{}' --schema {arguments}", self.program.display());
            let mut shell = Command::new("bash");
            shell
                .args(["-c", &script])
                .env_clear()
                .env("HOME", cache)
                .current_dir(cache)
                .stdin(Stdio::null());
            let output = shell.output().unwrap();
            assert!(output.status.success(), "the program suggests `{command}` and refuses it: {output:?}");
            std::fs::write(file, command).unwrap();
        }
    }

    /// A hint on the command line names flags, not the inputs of tools.
    fn check_hints(&self, hints: &[&str]) {
        let inputs = self.inputs.get_or_init(|| input_names(&self.manifest()));
        for hint in hints {
            let misnamed = remedies::misnamed_inputs(hint, inputs);
            assert!(misnamed.is_empty(), "a hint on the command line has {misnamed:?}: {hint}");
        }
    }

    fn manifest(&self) -> Value {
        serde_json::from_str(&self.read(&["manifest", "--format", "json"])).unwrap()
    }

    /// Why the manifest does not declare the error of an answer.
    fn undeclared_error(&self, name: &str, answer: &Value) -> Option<String> {
        answer.get("error").filter(|error| error.is_object())?;
        let manifest = self.manifest();
        let mut answer = answer.clone();
        // The manifest has the tool names of the default prefix.
        if let Some(tool) = answer.get_mut("tool") {
            *tool = format!("_codex_{}", name.replace(['.', '-'], "_")).into();
        }
        undeclared_error(&answer, &manifest["data"])
    }

    /// The name of a command's schema. The other envelopes write it with underscores, and tools with a prefix.
    fn schema_name(&self, command: &str) -> String {
        let with_underscores = |name: &str| name.replace(['.', '-'], "_");
        let names = self.read(&["schema"]);
        let matching =
            names.lines().filter(|name| with_underscores(command).ends_with(&with_underscores(name)));
        matching.max_by_key(|name| name.len()).unwrap_or_else(|| panic!("no schema of {command}")).to_owned()
    }

    fn violations(&self, name: &str, envelope: &'static str, answer: &Value) -> Vec<String> {
        let validator = {
            let mut validators = self.validators.lock().unwrap_or_else(PoisonError::into_inner);
            let entry = validators.entry((name.to_owned(), envelope));
            Arc::clone(entry.or_insert_with(|| Arc::new(self.validator(name, envelope))))
        };
        validator.iter_errors(answer).map(|error| format!("{}: {error}", error.instance_path())).collect()
    }

    fn validator(&self, name: &str, envelope: &'static str) -> Validator {
        let text = self.read(&["schema", name]);
        let schema: Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}: {text}"));
        let schema = match envelope {
            WHOLE => schema,
            _ => refusing_unknown_keys(&schema["output"][envelope], false),
        };
        let options = jsonschema::options().should_validate_formats(true);
        options.build(&schema).unwrap_or_else(|error| panic!("the schema {name}: {error}"))
    }

    /// What the program prints, from the cache if a test has called it before.
    fn read(&self, args: &[&str]) -> String {
        let cache = self.cache.get_or_init(|| cache_of(&self.program));
        let file = cache.join(args.join("-").replace('/', "-"));
        if let Ok(text) = std::fs::read_to_string(&file) {
            return text;
        }
        let mut command = Command::new(&self.program);
        command.args(args).env_clear().env("HOME", cache).current_dir(cache).stdin(Stdio::null());
        let output = command.output().unwrap();
        // Other test processes write the same file at the same time.
        let draft = cache.join(format!("draft-{}", std::process::id()));
        std::fs::write(&draft, &output.stdout).and_then(|()| std::fs::rename(&draft, &file)).unwrap();
        String::from_utf8(output.stdout).expect("the output is UTF-8")
    }

    fn log(&self, result: &str, envelope: &str, name: &str) {
        let path = self.program.with_file_name("answers.log");
        let mut log = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        // In append mode a short line is written completely, whichever process writes at the same time.
        log.write_all(format!("{result} {envelope} {name}\n").as_bytes()).unwrap();
    }
}

/// The names of all inputs that have more than one word.
fn input_names(manifest: &Value) -> Vec<String> {
    let commands = manifest["data"]["commands"].as_array().into_iter().flatten();
    let names = commands.filter_map(|command| command["input_schema"]["properties"].as_object());
    names.flat_map(Map::keys).filter(|name| name.contains('_')).cloned().collect()
}

/// The command with the same id for every task, because ids differ in every run.
fn without_task_ids(command: &str) -> String {
    let word = |word: &str| if word.starts_with("T-local-") { "T-local-0000000000" } else { word }.to_owned();
    command.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

fn hash_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The parts of an answer whose keys must all be published.
const CLOSED_PARTS: [&str; 4] = ["Data", "OtherData", "error_context", "details"];

/// A published schema is open, so that keys can be added; but an answer of this build has no other keys than those published.
fn refusing_unknown_keys(schema: &Value, is_closed: bool) -> Value {
    match schema {
        Value::Object(object) => {
            let inner = object.iter().map(|(key, value)| {
                let is_closed = is_closed || CLOSED_PARTS.contains(&key.as_str());
                (key.clone(), refusing_unknown_keys(value, is_closed))
            });
            let mut object: Map<String, Value> = inner.collect();
            if is_closed
                && object.get("properties").is_some_and(Value::is_object)
                && object.contains_key("type")
            {
                object.entry("additionalProperties").or_insert(false.into());
            }
            Value::Object(object)
        }
        Value::Array(items) => items.iter().map(|item| refusing_unknown_keys(item, is_closed)).collect(),
        other => other.clone(),
    }
}

/// The directory for the schemas of this build of the program.
fn cache_of(program: &Path) -> PathBuf {
    let metadata = std::fs::metadata(program).unwrap();
    let built = metadata.modified().unwrap().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let cache = program.with_file_name("published-schemas").join(format!("{built}-{}", metadata.len()));
    std::fs::create_dir_all(&cache).unwrap();
    cache
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_recognised_by_the_keys_of_its_envelope() {
        let cli =
            json!({"ok": true, "data": null, "error": null, "warnings": [], "meta": {"command": "a.b"}});
        let standard = json!({"success": true, "command": "a_b", "metadata": {}});
        let tool = json!({"schema_id": "x", "tool_category": "y", "tool": "_codex_a_b"});
        assert_eq!(envelope_of(&cli), Some(("cli", "a.b".to_owned())));
        assert_eq!(envelope_of(&standard), Some(("standard", "a_b".to_owned())));
        assert_eq!(envelope_of(&tool), Some(("tool", "_codex_a_b".to_owned())));
        assert_eq!(envelope_of(&json!({"type": "turn.started"})), None);
    }

    #[test]
    fn unknown_keys_are_refused_in_data_and_in_the_details_of_errors() {
        let object = json!({"type": "object", "properties": {"a": {"type": "object", "properties": {}}}});
        let map = json!({"type": "object", "properties": {}, "additionalProperties": {"type": "string"}});
        let schema = json!({"properties": {"meta": object}, "$defs": {"Data": object, "details": map}});
        let closed = refusing_unknown_keys(&schema, false);
        assert_eq!(closed["properties"], schema["properties"]);
        assert_eq!(closed["$defs"]["Data"]["additionalProperties"], false);
        assert_eq!(closed["$defs"]["Data"]["properties"]["a"]["additionalProperties"], false);
        assert_eq!(closed["$defs"]["details"], map);
    }
}
