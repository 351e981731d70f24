use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use crate::sample::closed;

#[test]
fn a_closed_pipe_ends_the_tool_quietly() {
    let dir = closed(3000);
    for json in [false, true] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_arborlog"));
        command.args(["log", "dump", "--payload", "hex"]).arg(dir.path());
        if json {
            command.arg("--json");
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert!(line.contains("0x100000001"), "{line}");
        drop(reader);
        let status = child.wait().unwrap();
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert_eq!((status.code(), err.as_str()), (Some(0), ""));
    }
}

#[test]
fn no_colour_and_no_bar_without_a_terminal() {
    let dir = closed(100);
    for command in ["ls", "dump", "verify", "stat"] {
        let run = crate::sample::tool(&format!("{command} DIR"), dir.path()).exits(0);
        assert!(!run.out.contains('\u{1b}') && run.err.is_empty(), "{run:?}");
    }
}
