//! The commands that `README.md` shows, run over what it says to try them on.

use std::fs;
use std::path::Path;

use crate::engine_sample::copy;
use crate::sample::arborlog;

#[path = "../../../examples/engine.rs"]
#[expect(dead_code, reason = "an example has a main function of its own")]
mod engine;
#[path = "../../../examples/append_and_read.rs"]
#[expect(dead_code, reason = "an example has a main function of its own")]
mod log;

/// The commands of the chapter on the tool, without their comments.
fn commands() -> Vec<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md")).unwrap();
    let (_, chapter) = text.split_once("\n## The tool\n").expect("it has the chapter");
    let (chapter, _) = chapter.split_once("\n## ").expect("it is not the last");
    let blocks = chapter.split("```").skip(1).step_by(2);
    let lines = blocks.flat_map(str::lines).filter(|line| line.starts_with("arborlog "));
    lines.map(|line| line.split_once('#').map_or(line, |(command, _)| command).trim().to_owned()).collect()
}

#[test]
fn each_command_of_the_readme_does_what_it_says() {
    let trial = tempfile::tempdir().unwrap();
    let at = |name: &str| trial.path().join(name);
    for name in ["engine", "log"] {
        fs::create_dir(at(name)).unwrap();
    }
    engine::make(&at("engine")).unwrap();
    log::make(&at("log")).unwrap();
    let other = copy(&at("log"));
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/zookeeper/fmt-36");
    let commands = commands();
    assert!(commands.len() > 15, "{commands:?}");
    for command in &commands {
        let is_import = command.starts_with("arborlog zookeeper import");
        let dir = match command {
            _ if is_import => at("imported"),
            command if command.starts_with("arborlog log ") => at("log"),
            _ => at("engine"),
        };
        let word = |word: &str| match word {
            "DIR" => dir.display().to_string(),
            "NEW" => at("new").display().to_string(),
            "OTHER_DIR" => other.path().display().to_string(),
            "/var/lib/zookeeper" => server.display().to_string(),
            "/var/lib/zookeeper.new" => at("exported").display().to_string(),
            word => word.to_owned(),
        };
        let words: Vec<_> = command.split_whitespace().skip(1).map(word).collect();
        arborlog(&words.join(" "), trial.path()).exits(0);
    }
    // What is shown changes nothing of what was made to try it on.
    arborlog("verify --deep DIR", &at("engine")).exits(0);
    arborlog("log verify DIR", &at("log")).exits(0);
}
