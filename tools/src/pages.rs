//! Completions and manual pages, made of the same definition that parses arguments.

use clap::{Command, CommandFactory};

use crate::args::Arguments;
use crate::engine_args::{CompletionArguments, ManArguments};
use crate::output::{Failure, Output};

const NAME: &str = "arborlog";

pub(crate) fn completions(arguments: &CompletionArguments, output: &mut Output) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), NAME, &mut text);
    output.bytes(&text)
}

pub(crate) fn man(arguments: &ManArguments, output: &mut Output) -> Result<(), Failure> {
    let mut command = Arguments::command();
    // Fills in what subcommands get of their parents.
    command.build();
    let mut chosen: &Command = &command;
    let mut name = NAME.to_owned();
    for verb in &arguments.verb {
        let Some(found) = chosen.find_subcommand(verb) else {
            let message = format!("there is no verb `{}`", arguments.verb.join(" "));
            return Err(Failure::Usage(message));
        };
        name = format!("{name}-{}", found.get_name());
        chosen = found;
    }
    let mut text = Vec::new();
    clap_mangen::Man::new(chosen.clone().display_name(name)).render(&mut text)?;
    output.bytes(&text)
}
