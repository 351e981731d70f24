//! What the verbs take that work on an engine's directory.

use std::path::PathBuf;

use arborlog::Zxid;
use clap::{Args, Subcommand};
use clap_complete::Shell;

use crate::args::{EngineTarget, Target, parse_zxid};
use crate::time::parse_time;

/// How to verify
#[derive(Args, Debug)]
pub(crate) struct VerifyArguments {
    #[command(flatten)]
    pub(crate) engine: EngineTarget,
    /// Also replay the log from the oldest snapshot on, and compare trees with the later ones by their digests; takes
    /// the memory of two trees
    #[arg(long)]
    pub(crate) deep: bool,
}

/// Which nodes to print
#[derive(Args, Clone, Debug)]
pub(crate) struct TreeArguments {
    // Not flattened: clap takes this for given if one of its own arguments is.
    /// The directory
    pub(crate) dir: PathBuf,
    /// Print JSON, one object a line; zxids are strings, and so are integers beyond 2^53
    #[arg(long)]
    pub(crate) json: bool,
    /// The directory of the log, if it is another one
    #[arg(long, value_name = "DIR")]
    pub(crate) log_dir: Option<PathBuf>,
    /// Only this node and those below it (default: /)
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<String>,
    /// How many levels below it
    #[arg(long, value_name = "N")]
    pub(crate) depth: Option<usize>,
    /// Print the sessions instead: their numbers, timeouts and ephemeral nodes
    #[arg(long)]
    pub(crate) sessions: bool,
}

/// `tree DIR` and `tree dump DIR`
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct TreeCommand {
    #[command(flatten)]
    pub(crate) arguments: Option<TreeArguments>,
    #[command(subcommand)]
    pub(crate) verb: Option<TreeVerb>,
}

/// What to do with the tree
#[derive(Subcommand, Debug)]
pub(crate) enum TreeVerb {
    /// Print the nodes, each before its children, children by name: the same as `tree DIR`
    #[command(after_help = "Examples:
  arborlog tree dump --json /var/lib/server > nodes.jsonl
  arborlog tree dump --json --sessions /var/lib/server
With --json a line is {\"path\",\"data\",\"stat\",\"acl\"}: data in base64 or null, the Stat as a client sees it.")]
    Dump(TreeArguments),
}

impl TreeArguments {
    pub(crate) fn engine(&self) -> EngineTarget {
        let TreeArguments { dir, json, log_dir, .. } = self.clone();
        EngineTarget { target: Target { dir, json }, log_dir }
    }
}

impl TreeCommand {
    pub(crate) fn arguments(&self) -> Option<&TreeArguments> {
        match &self.verb {
            Some(TreeVerb::Dump(arguments)) => Some(arguments),
            None => self.arguments.as_ref(),
        }
    }
}

/// What to do with snapshots
#[derive(Subcommand, Debug)]
pub(crate) enum SnapshotCommand {
    /// List the snapshots, newest first: zxids, nodes, bytes, time, and whether each is whole
    #[command(after_help = "Examples:
  arborlog snapshot ls /var/lib/server
  arborlog snapshot ls --quick --json /var/lib/server | jq .end_zxid
  arborlog snapshot ls /backup/snapshots-1            # a directory of snapshots alone")]
    Ls(SnapshotLsArguments),
    /// Print what a snapshot holds as JSON lines, in bounded memory: its nodes, its sessions, its txns
    #[command(after_help = "Examples:
  arborlog snapshot dump /var/lib/server | jq -r 'select(.type == \"node\").path'
  arborlog snapshot dump /var/lib/server --zxid 0x10000002a --exact > nodes.jsonl
Nodes come as the walk has met them, in no order; the txns of the walk's time, which follow, make the state at the
snapshot's end out of them. --exact makes it: nodes in order, with the Stat that a client sees, for the memory of a tree.")]
    Dump(SnapshotDumpArguments),
    /// Read and check every byte; say which ranges are damaged
    #[command(after_help = "Examples:
  arborlog snapshot verify /var/lib/server
  arborlog snapshot verify --deep --zxid 0x10000002a /var/lib/server   # also its tree's digest")]
    Verify(SnapshotVerifyArguments),
    /// Tell what fills the tree: subtrees, large nodes, many children, kinds of nodes, sizes of data
    #[command(after_help = "Examples:
  arborlog snapshot analyse /var/lib/server
  arborlog snapshot analyse /var/lib/server --depth 2 --top 20 --json
Memory is that of a number for each node with children, and of the subtrees at the depth that is asked for. Figures are
those of the walk; --exact counts the tree at the snapshot's end, for the memory of a tree.")]
    Analyse(AnalyseArguments),
}

/// An engine's directory or one of snapshots, and how to list
#[derive(Args, Debug)]
pub(crate) struct SnapshotLsArguments {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Read only the first and the last bytes of each file
    #[arg(long)]
    pub(crate) quick: bool,
}

/// Which snapshot to print
#[derive(Args, Debug)]
pub(crate) struct SnapshotDumpArguments {
    #[command(flatten)]
    pub(crate) target: Target,
    /// The snapshot that ends there (default: the newest)
    #[arg(long, value_name = "ZXID", value_parser = parse_zxid)]
    pub(crate) zxid: Option<Zxid>,
    /// Make the tree as it is at the snapshot's end, and print that
    #[arg(long)]
    pub(crate) exact: bool,
}

/// Which snapshots to verify
#[derive(Args, Debug)]
pub(crate) struct SnapshotVerifyArguments {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Only the snapshot that ends there
    #[arg(long, value_name = "ZXID", value_parser = parse_zxid)]
    pub(crate) zxid: Option<Zxid>,
    /// Also make its tree, and check the digest
    #[arg(long)]
    pub(crate) deep: bool,
}

/// What to count
#[derive(Args, Debug)]
pub(crate) struct AnalyseArguments {
    #[command(flatten)]
    pub(crate) target: Target,
    /// The snapshot that ends there (default: the newest)
    #[arg(long, value_name = "ZXID", value_parser = parse_zxid)]
    pub(crate) zxid: Option<Zxid>,
    /// Sum up the subtrees of nodes so many levels below the root
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) depth: usize,
    /// How many of the largest to print
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) top: usize,
    /// Count the tree as it is at the snapshot's end
    #[arg(long)]
    pub(crate) exact: bool,
}

/// What to restore, and where
#[derive(Args, Debug)]
pub(crate) struct RestoreArguments {
    /// The engine's directory; it is only read, also beside a live server
    #[arg(value_name = "SRC")]
    pub(crate) source: PathBuf,
    /// The directory of the new engine: empty, or not there yet
    #[arg(value_name = "DEST")]
    pub(crate) dest: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The state after this txn, which the log must reach (default: the last one)
    #[arg(long, value_name = "ZXID", value_parser = parse_zxid)]
    pub(crate) to_zxid: Option<Zxid>,
    /// The state before the first txn of a later time: RFC 3339 in UTC, or milliseconds since 1970
    #[arg(long, value_name = "TIME", value_parser = parse_time, allow_hyphen_values = true, conflicts_with = "to_zxid")]
    pub(crate) to_time: Option<i64>,
    /// Close all sessions, and remove their ephemeral nodes, by txns behind the target
    #[arg(long)]
    pub(crate) without_sessions: bool,
    /// Only tell what would be restored; DEST is not touched
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// The directory of SRC's log, if it is another one
    #[arg(long, value_name = "DIR")]
    pub(crate) source_log_dir: Option<PathBuf>,
    /// An empty directory for the log of the new engine, if it is to be another one
    #[arg(long, value_name = "DIR")]
    pub(crate) log_dir: Option<PathBuf>,
}

/// Where to cut an engine
#[derive(Args, Debug)]
pub(crate) struct EngineTruncateArguments {
    #[command(flatten)]
    pub(crate) engine: EngineTarget,
    /// The last zxid that stays, hexadecimal (0x...) or decimal
    #[arg(long, value_name = "ZXID", value_parser = parse_zxid)]
    pub(crate) to_zxid: Zxid,
    /// Do it
    #[arg(long)]
    pub(crate) yes: bool,
}

/// For which shell
#[derive(Args, Debug)]
pub(crate) struct CompletionArguments {
    /// The shell
    pub(crate) shell: Shell,
}

/// Which page
#[derive(Args, Debug)]
pub(crate) struct ManArguments {
    /// The verb, such as `log dump` (default: the tool itself)
    #[arg(value_name = "VERB")]
    pub(crate) verb: Vec<String>,
}

impl SnapshotCommand {
    pub(crate) fn target(&self) -> &Target {
        match self {
            SnapshotCommand::Ls(arguments) => &arguments.target,
            SnapshotCommand::Dump(arguments) => &arguments.target,
            SnapshotCommand::Verify(arguments) => &arguments.target,
            SnapshotCommand::Analyse(arguments) => &arguments.target,
        }
    }
}
