//! Logs: on stderr, filtered by `MCP_DELEGATOR_LOG` or the configured level, and cleaned like everything we say.

use std::io;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use tracing_subscriber::filter::{ParseError, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::cli::globals::LogFormat;
use crate::stdout::Printer;

/// Starts logging. The filter is a list of levels and `target=level`; an invalid one is returned as an error.
pub fn start(printer: &Arc<Printer>, filter: &str, format: LogFormat) -> Result<(), String> {
    if filter.contains('[') {
        return Err("filters by span or field are not supported".to_owned());
    }
    let directives: Vec<&str> = filter.split(',').filter(|directive| !directive.is_empty()).collect();
    let targets: Targets = directives.join(",").parse().map_err(|error: ParseError| error.to_string())?;
    let registry = tracing_subscriber::registry().with(targets);
    let layer =
        tracing_subscriber::fmt::layer().with_ansi(false).with_writer(PrinterWriter(Arc::clone(printer)));
    // Only one subscriber can be set; in a process that has one already (a test) the first one stays.
    let _ = match format {
        LogFormat::Json => registry.with(layer.json()).try_init(),
        LogFormat::Text => registry.with(layer).try_init(),
    };
    Ok(())
}

/// Words for whoever watches stderr, in the form of the lines around them. They are told whatever the filter says.
pub fn announcement(message: &str, format: LogFormat) -> String {
    match format {
        LogFormat::Text => message.to_owned(),
        LogFormat::Json => json!({
            "timestamp": Timestamp::now().to_string(),
            "level": "INFO",
            "fields": {"message": message},
            "target": module_path!(),
        })
        .to_string(),
    }
}

struct PrinterWriter(Arc<Printer>);

impl<'a> MakeWriter<'a> for PrinterWriter {
    type Writer = BufferedLine;

    fn make_writer(&'a self) -> BufferedLine {
        BufferedLine { printer: Arc::clone(&self.0), text: Vec::new() }
    }
}

/// One event, held until it is whole: a secret must not slip through between two writes.
struct BufferedLine {
    printer: Arc<Printer>,
    text: Vec<u8>,
}

impl io::Write for BufferedLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for BufferedLine {
    fn drop(&mut self) {
        self.printer.remark(&String::from_utf8_lossy(&self.text));
    }
}
