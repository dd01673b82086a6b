//! Runs shell scripts up to each limit.

#![expect(clippy::disallowed_methods, reason = "the tests start shells")]

use super::*;

const LONG: Duration = Duration::from_secs(60);

fn limits() -> Limits<'static> {
    let stdout = Capture::AtMost(1 << 20);
    Limits {
        input: Some(b""),
        time: LONG,
        stdout,
        stderr: Some(Capture::Beginning(1 << 10)),
        cancel: None,
        leaves_children: false,
    }
}

fn run_script(script: &str, limits: &Limits<'_>) -> Finished {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    run(command, limits).unwrap()
}

#[test]
fn status_and_both_streams_are_reported() {
    let finished = run_script("cat; echo problem >&2; exit 3", &Limits { input: Some(b"text"), ..limits() });
    assert_eq!((finished.end, finished.status.code()), (End::Exited, Some(3)));
    assert_eq!((finished.stdout.as_slice(), finished.stderr.as_slice()), (&b"text"[..], &b"problem\n"[..]));
    let merged = Limits { stderr: None, ..limits() };
    assert_eq!(run_script("echo a; echo b >&2; echo c", &merged).stdout, b"a\nb\nc\n");
    let silent = Limits { stdout: Capture::Nothing, ..limits() };
    assert_eq!(run_script("echo a; echo b >&2", &silent).stderr, b"b\n");
}

#[test]
fn large_input_and_output_do_not_deadlock() {
    let input = vec![b'x'; 1 << 20];
    let large = Limits { input: Some(&input), ..limits() };
    assert_eq!(run_script("cat", &large).stdout, input);
    assert_eq!(run_script("echo done", &large).stdout, b"done\n", "the input may be left unread");
}

#[test]
fn a_program_that_hangs_is_killed_with_its_children() {
    let finished =
        run_script("sleep 600 & echo $!; wait", &Limits { time: Duration::from_secs(1), ..limits() });
    assert_eq!((finished.end, finished.status.code()), (End::TimedOut, None));
    let pid = String::from_utf8(finished.stdout).unwrap();
    // The signal was sent; the kernel ends the process soon.
    let state = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    while !(state().is_empty() || state().contains(") Z")) {
        std::thread::yield_now();
    }
}

#[test]
fn a_process_that_left_the_group_delays_nothing() {
    let script = "setsid sleep 600 & echo $!; until [ $(cat /proc/$!/comm) = sleep ]; do :; done";
    let finished = run_script(script, &limits());
    assert_eq!(finished.end, End::Exited);
    let pid: i32 = String::from_utf8(finished.stdout).unwrap().trim().parse().unwrap();
    let _ = rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
}

#[test]
fn a_cancelled_program_is_killed() {
    let cancelled = Limits { cancel: Some(&AtomicBool::new(true)), ..limits() };
    assert_eq!(run_script("sleep 600", &cancelled).end, End::Cancelled);
}

#[test]
fn endless_output_ends_the_program_or_is_dropped() {
    assert_eq!(run_script("exec yes", &limits()).end, End::TooMuchOutput);
    let finished = run_script("head -c 1000000 /dev/zero >&2; exit 3", &limits());
    assert_eq!((finished.status.code(), finished.stderr.len()), (Some(3), 1 << 10));
    let both_ends = Limits { stdout: Capture::BothEnds(8), ..limits() };
    let finished = run_script("echo beginning; head -c 1000 /dev/zero; echo end", &both_ends);
    assert_eq!(finished.stdout, b"beginnin\n[998 bytes omitted]\n\0\0\0\0end\n");
}

#[test]
fn a_missing_program_is_a_start_error() {
    let error = run(Command::new("/nonexistent/program"), &limits()).unwrap_err();
    assert!(matches!(error, RunError::Start(_)), "{error:?}");
}
