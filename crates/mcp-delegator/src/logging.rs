//! Logs: on stderr, filtered by `MCP_DELEGATOR_LOG` or the configured level, and cleaned like everything we say.

use std::io;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::cli::globals::LogFormat;
use crate::stdout::Printer;

/// Starts logging. A filter that cannot be read is an error the caller may tell.
pub fn start(printer: &Arc<Printer>, filter: &str, format: LogFormat) -> Result<(), String> {
    let filter = EnvFilter::builder().parse(filter).map_err(|error| error.to_string())?;
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(PrinterWriter(Arc::clone(printer)));
    // Only one subscriber can be set; in a process that has one already (a test) the first one stays.
    let _ = match format {
        LogFormat::Json => builder.json().with_ansi(false).try_init(),
        LogFormat::Text => builder.with_ansi(false).try_init(),
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
