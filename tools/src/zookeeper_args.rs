//! What the verbs take that work on ZooKeeper's own directories.

use std::path::PathBuf;

use arborlog::Zxid;
use arborlog::zookeeper::{Compression, ZkFormat};
use clap::{Args, Subcommand, ValueEnum};

use crate::args::{Target, parse_zxid};
use crate::time::parse_time;

/// What to do with ZooKeeper's data
#[derive(Subcommand, Debug)]
pub(crate) enum ZookeeperCommand {
    /// Make an engine of a ZooKeeper server's data: zxids, versions, sessions, ACLs and all go on where they are
    #[command(after_help = "Examples:
  arborlog zookeeper import /var/lib/zookeeper /var/lib/server --dry-run
  arborlog zookeeper import /var/lib/zookeeper /var/lib/server --data-log-dir /log/zookeeper
Stop the server first: what it writes meanwhile is not in the engine. SRC is only read. Damage is refused;
--salvage ends the state before it, and says what is not in it.")]
    Import(ImportArguments),
    /// Write the state of an engine for a ZooKeeper server
    #[command(after_help = "Examples:
  arborlog zookeeper export /var/lib/server /var/lib/zookeeper.new --format 3.9 --dry-run
  arborlog zookeeper export /var/lib/server /var/lib/zookeeper.new --format 3.9
  arborlog zookeeper export /var/lib/server /mnt/out --format 3.6 --log-tail --compression gz
SRC is only read, also beside a live server. DEST gets a version-2 with a snapshot and the epochs.")]
    Export(ExportArguments),
    /// Print what files of ZooKeeper's hold as JSON lines, in bounded memory: txns of logs, sessions and nodes of snapshots
    #[command(after_help = "Examples:
  arborlog zookeeper dump /var/lib/zookeeper/version-2/log.1 | jq -r .zxid
  arborlog zookeeper dump /var/lib/zookeeper/version-2/snapshot.20.gz | jq -r .path")]
    Dump(DumpArguments),
    /// Read and check every byte of a ZooKeeper server's directory, and say what an import would find
    #[command(after_help = "Examples:
  arborlog zookeeper verify /var/lib/zookeeper
  arborlog zookeeper verify --json /var/lib/zookeeper --data-log-dir /log/zookeeper && echo sound
  arborlog zookeeper verify /var/lib/zookeeper --salvage
Every file is read, whatever --to-zxid, --to-time and --salvage say; they tell what an import with them would make.
A link, a pipe or a directory with a file's name is told as not read; an import refuses it. Damage (1) goes before that (3).")]
    Verify(VerifyArguments),
}

/// What to take over, and where to
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own on the command line")]
pub(crate) struct ImportArguments {
    /// The server's dataDir, or the version-2 in it; it is only read
    #[arg(value_name = "SRC")]
    pub(crate) source: PathBuf,
    /// The directory of the new engine: empty, or not there yet
    #[arg(value_name = "DEST")]
    pub(crate) dest: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The server's dataLogDir, if it has one
    #[arg(long, value_name = "DIR")]
    pub(crate) data_log_dir: Option<PathBuf>,
    /// The state after this txn, which the logs must reach (default: the last one)
    #[arg(long, value_name = "ZXID", value_parser = parse_zxid)]
    pub(crate) to_zxid: Option<Zxid>,
    /// The state before the first txn of a later time: RFC 3339 in UTC, or milliseconds since 1970
    #[arg(long, value_name = "TIME", value_parser = parse_time, allow_hyphen_values = true, conflicts_with = "to_zxid")]
    pub(crate) to_time: Option<i64>,
    /// Close all sessions, and remove their ephemeral nodes, by txns behind the target
    #[arg(long)]
    pub(crate) without_sessions: bool,
    /// Only tell what would be made; DEST is not touched
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Pass over damage: the state ends before the first damage of a log
    #[arg(long)]
    pub(crate) salvage: bool,
    /// The server ran without zookeeper.extendedTypesEnabled: what looks like a time to live is a session
    #[arg(long)]
    pub(crate) no_extended_types: bool,
    /// SRC has no log and is to have none, as a backup or an export: else that is refused, since it may be elsewhere
    #[arg(long)]
    pub(crate) snapshot_alone: bool,
    /// An empty directory for the log of the new engine, if it is to be another one
    #[arg(long, value_name = "DIR")]
    pub(crate) log_dir: Option<PathBuf>,
}

/// What to write, and where to
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own on the command line")]
pub(crate) struct ExportArguments {
    /// The engine's directory; it is only read
    #[arg(value_name = "SRC")]
    pub(crate) source: PathBuf,
    /// The server's dataDir: empty, or not there yet
    #[arg(value_name = "DEST")]
    pub(crate) dest: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The oldest release that is to read it
    #[arg(long, value_enum)]
    pub(crate) format: FormatArgument,
    /// The state after this txn, which the log must reach (default: the last one)
    #[arg(long, value_name = "ZXID", value_parser = parse_zxid)]
    pub(crate) to_zxid: Option<Zxid>,
    /// The state before the first txn of a later time: RFC 3339 in UTC, or milliseconds since 1970
    #[arg(long, value_name = "TIME", value_parser = parse_time, allow_hyphen_values = true, conflicts_with = "to_zxid")]
    pub(crate) to_time: Option<i64>,
    /// Close all sessions, and remove their ephemeral nodes, by txns behind the target
    #[arg(long, conflicts_with = "log_tail")]
    pub(crate) without_sessions: bool,
    /// Only tell what would be written; DEST is not touched
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Write the newest snapshot and the txns behind it, and not one snapshot of the state
    #[arg(long)]
    pub(crate) log_tail: bool,
    /// How to compress the snapshot
    #[arg(long, value_enum, default_value_t = CompressionArgument::None)]
    pub(crate) compression: CompressionArgument,
    /// The directory of SRC's log, if it is another one
    #[arg(long, value_name = "DIR")]
    pub(crate) source_log_dir: Option<PathBuf>,
}

/// A release of ZooKeeper
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FormatArgument {
    /// 3.4
    #[value(name = "3.4")]
    V3_4,
    /// 3.5
    #[value(name = "3.5")]
    V3_5,
    /// 3.6, 3.7, 3.8
    #[value(name = "3.6", aliases = ["3.7", "3.8"])]
    V3_6,
    /// 3.9
    #[value(name = "3.9")]
    V3_9,
}

impl FormatArgument {
    pub(crate) fn format(self) -> ZkFormat {
        match self {
            FormatArgument::V3_4 => ZkFormat::V3_4,
            FormatArgument::V3_5 => ZkFormat::V3_5,
            FormatArgument::V3_6 => ZkFormat::V3_6,
            FormatArgument::V3_9 => ZkFormat::V3_9,
        }
    }
}

/// How a snapshot is compressed
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CompressionArgument {
    /// Not at all
    None,
    /// As gzip does
    Gz,
    /// Blocks of snappy
    Snappy,
}

impl CompressionArgument {
    pub(crate) fn compression(self) -> Compression {
        match self {
            CompressionArgument::None => Compression::None,
            CompressionArgument::Gz => Compression::Gz,
            CompressionArgument::Snappy => Compression::Snappy,
        }
    }
}

/// Which files to print
#[derive(Args, Debug)]
pub(crate) struct DumpArguments {
    /// Snapshots and logs
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Print JSON, as it does anyway
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to verify
#[derive(Args, Debug)]
pub(crate) struct VerifyArguments {
    #[command(flatten)]
    pub(crate) target: Target,
    /// The server's dataLogDir, if it has one
    #[arg(long, value_name = "DIR")]
    pub(crate) data_log_dir: Option<PathBuf>,
    /// There is no log and is to be none
    #[arg(long)]
    pub(crate) snapshot_alone: bool,
    /// The state after this txn, as an import with this switch would make it
    #[arg(long, value_name = "ZXID", value_parser = parse_zxid)]
    pub(crate) to_zxid: Option<Zxid>,
    /// The state before the first txn of a later time: RFC 3339 in UTC, or milliseconds since 1970
    #[arg(long, value_name = "TIME", value_parser = parse_time, allow_hyphen_values = true, conflicts_with = "to_zxid")]
    pub(crate) to_time: Option<i64>,
    /// Say what an import would make that passes over damage; the damage is told, and the exit code is that of it
    #[arg(long)]
    pub(crate) salvage: bool,
    /// The server ran without zookeeper.extendedTypesEnabled: what looks like a time to live is a session
    #[arg(long)]
    pub(crate) no_extended_types: bool,
}

impl ZookeeperCommand {
    pub(crate) fn json(&self) -> bool {
        match self {
            ZookeeperCommand::Import(arguments) => arguments.json,
            ZookeeperCommand::Export(arguments) => arguments.json,
            ZookeeperCommand::Dump(_) => true,
            ZookeeperCommand::Verify(arguments) => arguments.target.json,
        }
    }
}
