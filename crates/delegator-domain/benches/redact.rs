//! Throughput of the redactor, compared with copying and scanning memory. Prints a table, asserts nothing.

#![expect(clippy::print_stdout, reason = "the table is the result")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use delegator_domain::redact::Redactor;

const SIZE: usize = 32 << 20;
const CHUNK: usize = 64 << 10;
const ROUNDS: usize = 5;

fn main() {
    let redactor = Redactor::builder()
        .environment(
            (0..12).map(|index| (format!("S{index}_TOKEN"), format!("Tk{index}-v4lue/of&a\"s3cret{index}"))),
        )
        .build();
    let clean = lines(|_| None);
    let dirty = lines(|index| match index % 20 {
        0 => Some("ghp_a1B2c3D4e5F6g7H8i9J0a1B2c3D4e5F6g7H8"),
        10 => Some("Tk7-v4lue/of&a\\\"s3cret7"),
        _ => None,
    });
    println!("{:<34}{:>10}", "", "MB/s");
    report("copy", &clean, |input, out| {
        for chunk in input.chunks(CHUNK) {
            out.clear();
            out.extend_from_slice(black_box(chunk));
        }
    });
    report("memchr, counting newlines", &clean, |input, _| {
        black_box(memchr::memchr_iter(b'\n', black_box(input)).count());
    });
    for (name, input) in [("redact clean JSONL", &clean), ("redact JSONL, 10 % lines match", &dirty)] {
        report(name, input, |input, out| {
            let mut stream = redactor.stream();
            for chunk in input.chunks(CHUNK) {
                out.clear();
                stream.push(chunk, out);
            }
            stream.finish(out);
        });
    }
    report("redact clean JSONL line by line", &clean, |input, out| {
        let mut stream = redactor.stream();
        for line in input.split_inclusive(|&byte| byte == b'\n') {
            out.clear();
            stream.push(line, out);
        }
        stream.finish(out);
    });
}

fn lines(secret: impl Fn(usize) -> Option<&'static str>) -> Vec<u8> {
    let mut text = Vec::with_capacity(SIZE + 1024);
    for index in 0.. {
        if text.len() >= SIZE {
            break;
        }
        let secret = secret(index).unwrap_or("nothing of interest");
        let line = format!(
            "{{\"type\":\"assistant\",\"id\":{index},\"uuid\":\"123e4567-e89b-12d3-a456-4266{index:08}\",\
             \"text\":\"Reading src/module_{index}.rs at https://example.com/a/b\\nThe task keeps a token for the \
             author; see also the documentation about \\\"authentication\\\" and sha256:{index:064x}\",\
             \"output\":\"{secret}\\n   Compiling delegator v0.1.0\\n    Finished in 2.31s\"}}\n"
        );
        text.extend_from_slice(line.as_bytes());
    }
    text
}

fn report(name: &str, input: &[u8], mut work: impl FnMut(&[u8], &mut Vec<u8>)) {
    let mut out = Vec::with_capacity(2 * CHUNK);
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        work(input, &mut out);
        black_box(&out);
        best = best.min(start.elapsed());
    }
    println!("{name:<34}{:>10.0}", input.len() as f64 / best.as_secs_f64() / 1e6);
}
