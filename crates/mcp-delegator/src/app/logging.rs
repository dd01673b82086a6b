//! Logs on stderr.
//!
//! The filter is `MCP_DELEGATOR_LOG` or the configured level. Every line passes through the printer, which redacts
//! secrets; no log line may bypass it.

use std::io;
use std::sync::Arc;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::output::printer::Printer;
use crate::spec::formats::LogFormat;

/// Starts logging. Returns an error message if the filter is not valid.
pub fn start(printer: &Arc<Printer>, filter: &str, format: LogFormat) -> Result<(), String> {
    let filter = EnvFilter::builder().parse(filter).map_err(|error| error.to_string())?;
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(PrinterWriter(Arc::clone(printer)));
    // A process can set only one subscriber; in tests the first one stays.
    let _ = match format {
        LogFormat::Json => builder.json().with_ansi(false).try_init(),
        LogFormat::Text => builder.with_ansi(false).try_init(),
    };
    Ok(())
}

struct PrinterWriter(Arc<Printer>);

impl<'a> MakeWriter<'a> for PrinterWriter {
    type Writer = BufferedLine;

    fn make_writer(&'a self) -> BufferedLine {
        BufferedLine { printer: Arc::clone(&self.0), text: Vec::new() }
    }
}

/// Buffers one log event until it is complete, so that a secret split over two writes is still redacted.
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
