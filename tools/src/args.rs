use std::path::PathBuf;

use arborlog::{Epoch, Zxid};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::engine_args::{
    CompletionArguments, EngineTruncateArguments, ManArguments, RestoreArguments, SnapshotCommand,
    TreeCommand, VerifyArguments,
};
use crate::time::parse_time;
use crate::zookeeper_args::ZookeeperCommand;

const EXIT_CODES: &str = "\
Exit codes, of every command:
  0  all is sound, or what was asked for was done
  1  it is damaged: bytes have changed, or files are missing or foreign
  2  wrong usage
  3  the disk failed, or the request was refused (in use, a newer version's, no log or engine, not in the log)
A torn end that nothing proves to be acknowledged counts as sound: the next open cuts it. What was judged or done counts
even if it cannot be printed; a listing that cannot be printed is a 3. A reader that closes the pipe is no failure.
docs/RECOVERY.md says what to do for each code in [brackets].";

/// Looks at an arborlog engine or transaction log, verifies it, and repairs it when told to
#[derive(Parser, Debug)]
#[command(name = "arborlog", version, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) area: Area,
}

/// What to work on
#[derive(Subcommand, Debug)]
pub(crate) enum Area {
    /// A transaction log by itself; an engine's is in DIR/log-N
    #[command(subcommand, after_help = EXIT_CODES)]
    Log(Command),
    /// The snapshots of an engine, or of a directory
    #[command(subcommand, after_help = EXIT_CODES)]
    Snapshot(SnapshotCommand),
    /// The state of an engine: its last zxid, epochs, snapshots, nodes, sessions, digest
    #[command(after_help = "Examples:
  arborlog stat /var/lib/server
  arborlog stat --json /var/lib/server | jq .digest
The directory is only read, also beside a live server.")]
    Stat(EngineTarget),
    /// Print the nodes of an engine's tree, each before its children, one a line
    #[command(after_help = "Examples:
  arborlog tree /var/lib/server
  arborlog tree /var/lib/server --path /app --depth 1
  arborlog tree --json /var/lib/server          # all of it: data in base64, Stat, ACL
The directory is only read, also beside a live server. One of the name `dump` is given as ./dump.")]
    Tree(TreeCommand),
    /// Read and check every byte of an engine's directory: manifest, log, snapshots, and how they fit
    #[command(after_help = "Examples:
  arborlog verify /var/lib/server
  arborlog verify --deep --json /var/lib/server && echo sound
The directory is only read. Each damaged range is named with file, offset and what is lost by it;
`arborlog inspect DIR` has the next step for each.")]
    Verify(VerifyArguments),
    /// One page for a bad day: what each file is, what an open would do, and the next step for each finding
    #[command(after_help = "Examples:
  arborlog inspect /var/lib/server
  arborlog inspect --json /var/lib/server --log-dir /var/log/server
The directory is only read; not one byte changes.")]
    Inspect(EngineTarget),
    /// Make a new engine with a state that another one had: its last one, or that of a zxid or a time
    #[command(after_help = "Examples:
  arborlog restore /var/lib/server /var/lib/restored --dry-run
  arborlog restore /var/lib/server /var/lib/restored --to-zxid 0x10000002a
  arborlog restore /mnt/backup /var/lib/server --to-time 2026-01-31T08:00:00Z --without-sessions
SRC is only read. The new engine is another database, with an id of its own.")]
    Restore(RestoreArguments),
    /// Remove all txns of an engine after a zxid, and the snapshots that hold them; without --yes, only tell
    #[command(after_help = "Examples:
  arborlog truncate /var/lib/server --to-zxid 0x10000002a          # look first
  arborlog truncate /var/lib/server --to-zxid 0x10000002a --yes
The engine must not be open. What is cut off the log is kept; snapshots that hold it are removed.")]
    Truncate(EngineTruncateArguments),
    /// ZooKeeper's own directories: make an engine of one, write one, look into its files
    #[command(subcommand, after_help = EXIT_CODES)]
    Zookeeper(ZookeeperCommand),
    /// Print completions for a shell
    #[command(after_help = "Examples:
  arborlog completions bash > /usr/share/bash-completion/completions/arborlog
  arborlog completions zsh > ~/.zfunc/_arborlog
  arborlog completions fish > ~/.config/fish/completions/arborlog.fish")]
    Completions(CompletionArguments),
    /// Print the manual page of the tool, or of a verb
    #[command(after_help = "Examples:
  arborlog man | man -l -
  arborlog man log dump > arborlog-log-dump.1")]
    Man(ManArguments),
}

/// An engine's directory, and how to print
#[derive(Args, Clone, Debug)]
pub(crate) struct EngineTarget {
    #[command(flatten)]
    pub(crate) target: Target,
    /// The directory of the log, if it is another one
    #[arg(long, value_name = "DIR")]
    pub(crate) log_dir: Option<PathBuf>,
}

impl Area {
    pub(crate) fn json(&self) -> bool {
        match self {
            Area::Log(command) => command.target().json,
            Area::Snapshot(command) => command.target().json,
            Area::Stat(engine) | Area::Inspect(engine) => engine.target.json,
            Area::Tree(command) => command.arguments().is_some_and(|arguments| arguments.json),
            Area::Verify(arguments) => arguments.engine.target.json,
            Area::Restore(arguments) => arguments.json,
            Area::Truncate(arguments) => arguments.engine.target.json,
            Area::Zookeeper(command) => command.json(),
            Area::Completions(_) | Area::Man(_) => false,
        }
    }
}

/// What to do with the log
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// List the files of a log, one a line, with what they hold
    #[command(after_help = "Examples:
  arborlog log ls /var/lib/server/log-1
  arborlog log ls --json /var/lib/server/log-1 | jq 'select(.state == \"damaged\")'")]
    Ls(Target),
    /// Print records, one a line
    #[command(after_help = "Examples:
  arborlog log dump DIR --from 0x100000000 --to 0x100000fff
  arborlog log dump DIR --since 2026-01-31T08:00:00Z --payload text --limit 100
  arborlog log dump DIR --file 0000000000000003.seg.cut-9     # what a salvage put aside")]
    Dump(DumpArguments),
    /// Read and check every byte; say what is damaged and what to do next
    #[command(after_help = "Examples:
  arborlog log verify DIR
  arborlog log verify --json DIR && echo sound")]
    Verify(Target),
    /// Totals: records, bytes, groups, padding, times, zxids, epochs
    #[command(after_help = "Examples:
  arborlog log stat DIR
  arborlog log stat --json DIR | jq .records")]
    Stat(Target),
    /// Cut off everything after a zxid; without --yes, only say what would be cut
    #[command(after_help = "Examples:
  arborlog log truncate DIR --to 0x10000002a          # look first
  arborlog log truncate DIR --to 0x10000002a --yes
Nothing is deleted: what is cut is kept under other names, or behind the end of the last file.")]
    Truncate(TruncateArguments),
    /// Put one damaged record back from another copy of the log; without --yes, only say what would be written
    #[command(after_help = "Examples:
  arborlog log repair DIR --zxid 0x10000002a --from /mnt/peer/log          # look first
  arborlog log repair DIR --zxid 0x10000002a --from /mnt/peer/log --yes
The other directory is only read; it may be a replica's or a backup. Its bytes are taken only if they complete the
checksums of the damaged group. `arborlog log verify DIR` names the damaged zxids. Repair one after the other.")]
    Repair(RepairArguments),
    /// End a damaged log before its first damage; without --yes, only say what would be lost
    #[command(after_help = "Examples:
  arborlog log salvage DIR                            # look first: what would be lost
  arborlog log salvage DIR --yes
The last resort: restore from a peer or a backup if there is one. Acknowledged records behind the damage are
no part of the log afterwards. Nothing is deleted: files are kept under other names (see dump --file).")]
    Salvage(SalvageArguments),
}

/// The directory, and how to print
#[derive(Args, Clone, Debug)]
pub(crate) struct Target {
    /// The directory
    pub(crate) dir: PathBuf,
    /// Print JSON, one object a line; zxids are strings, and so are integers beyond 2^53
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which records to print, and how
#[derive(Args, Debug)]
pub(crate) struct DumpArguments {
    #[command(flatten)]
    pub(crate) target: Target,
    /// First zxid, hexadecimal (0x...) or decimal
    #[arg(long, value_name = "ZXID", value_parser = parse_zxid)]
    pub(crate) from: Option<Zxid>,
    /// Last zxid
    #[arg(long, value_name = "ZXID", value_parser = parse_zxid)]
    pub(crate) to: Option<Zxid>,
    /// Earliest time: RFC 3339 in UTC, or milliseconds since 1970
    #[arg(long, value_name = "TIME", value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) since: Option<i64>,
    /// Latest time
    #[arg(long, value_name = "TIME", value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) until: Option<i64>,
    /// Stop after this many records
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// How to print payloads
    #[arg(long, value_enum, default_value_t = PayloadFormat::None)]
    pub(crate) payload: PayloadFormat,
    /// Only this file, whether it is part of the log or was put aside
    #[arg(long, value_name = "NAME")]
    pub(crate) file: Option<String>,
}

/// How a payload is printed
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PayloadFormat {
    /// Only its length
    None,
    /// As text, with everything else escaped
    Text,
    /// Hexadecimal
    Hex,
    /// Base64
    Base64,
}

/// Where to cut
#[derive(Args, Debug)]
pub(crate) struct TruncateArguments {
    #[command(flatten)]
    pub(crate) target: Target,
    /// The last zxid that stays, hexadecimal (0x...) or decimal
    #[arg(long, visible_alias = "to-zxid", value_name = "ZXID", value_parser = parse_zxid)]
    pub(crate) to: Zxid,
    /// Do it
    #[arg(long)]
    pub(crate) yes: bool,
}

/// What to repair, and from where
#[derive(Args, Debug)]
pub(crate) struct RepairArguments {
    #[command(flatten)]
    pub(crate) target: Target,
    /// The damaged record, hexadecimal (0x...) or decimal
    #[arg(long, value_name = "ZXID", value_parser = parse_zxid)]
    pub(crate) zxid: Zxid,
    /// The directory of another copy of the log
    #[arg(long, value_name = "OTHER_DIR")]
    pub(crate) from: PathBuf,
    /// Do it
    #[arg(long)]
    pub(crate) yes: bool,
}

/// How to salvage
#[derive(Args, Debug)]
pub(crate) struct SalvageArguments {
    #[command(flatten)]
    pub(crate) target: Target,
    /// The numbering of a log whose manifest is lost, if the records leave it open
    #[arg(long, value_enum)]
    pub(crate) numbering: Option<NumberingArgument>,
    /// An epoch that is known to have been promised; a lost manifest takes one without records with it
    #[arg(long, value_name = "N", value_parser = |text: &str| text.parse().map(Epoch::new))]
    pub(crate) epoch: Option<Epoch>,
    /// Do it
    #[arg(long)]
    pub(crate) yes: bool,
}

/// What identifiers are
#[derive(ValueEnum, Clone, Copy, Debug)]
pub(crate) enum NumberingArgument {
    /// ZooKeeper's: the epoch in the high half
    Zxid,
    /// Plain rising numbers
    Index,
}

impl Command {
    pub(crate) fn target(&self) -> &Target {
        match self {
            Command::Ls(target) | Command::Verify(target) | Command::Stat(target) => target,
            Command::Dump(arguments) => &arguments.target,
            Command::Truncate(arguments) => &arguments.target,
            Command::Repair(arguments) => &arguments.target,
            Command::Salvage(arguments) => &arguments.target,
        }
    }
}

pub(crate) fn parse_zxid(text: &str) -> Result<Zxid, String> {
    let number = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16),
        _ => text.parse(),
    };
    number.map(Zxid::new).map_err(|_| "not a zxid: 0x and hexadecimal digits, or a decimal number".into())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_holds() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn zxids_are_hexadecimal_or_decimal() {
        assert_eq!(parse_zxid("0x1F"), Ok(Zxid::new(31)));
        assert_eq!(parse_zxid("31"), Ok(Zxid::new(31)));
        assert_eq!(parse_zxid("0xffffffffffffffff"), Ok(Zxid::MAX));
        for bad in ["", "0x", "1f", "-1", "0x1ffffffffffffffff", "0x+1", " 1"] {
            assert!(parse_zxid(bad).is_err(), "{bad}");
        }
    }
}
