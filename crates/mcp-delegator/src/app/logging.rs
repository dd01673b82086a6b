//! Logs on stderr.
//!
//! The filter is `MCP_DELEGATOR_LOG` or the configured level. Every line passes through the printer, which
//! redacts secrets; no log line may bypass it.

use std::io;
use std::sync::Arc;

use tracing_subscriber::filter::{ParseError, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::output::printer::Printer;
use crate::spec::formats::LogFormat;

/// Starts logging. The filter is a list of levels and `target=level`; an invalid one is returned as an error.
pub fn start(printer: &Arc<Printer>, filter: &str, format: LogFormat) -> Result<(), String> {
    if filter.contains('[') {
        return Err("filters by span or field are not supported".to_owned());
    }
    let directives: Vec<&str> = filter.split(',').filter(|directive| !directive.is_empty()).collect();
    let targets: Targets = directives.join(",").parse().map_err(|error: ParseError| error.to_string())?;
    let registry = tracing_subscriber::registry().with(targets);
    let printer = Arc::clone(printer);
    let layer = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_writer(move || BufferedLine { printer: Arc::clone(&printer), text: Vec::new() });
    // A process can set only one subscriber; in tests the first one stays.
    let _ = match format {
        LogFormat::Json => registry.with(layer.json()).try_init(),
        LogFormat::Text => registry.with(layer).try_init(),
    };
    Ok(())
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
