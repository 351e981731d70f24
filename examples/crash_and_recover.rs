//! What the log is for: a process is killed in the middle of its work, again and again, and nothing that it
//! acknowledged is ever missing.
//!
//! `cargo run --release --example crash_and_recover [-- --rounds N --dir DIR]`
//!
//! Each round starts this program again as a child. The child opens the log, takes the next epoch, and appends
//! from several threads; each thread prints a record's zxid once its ticket has said that it is durable. The
//! parent kills the child with SIGKILL, opens the log itself and reads all of it. The exit code is 1 if
//! anything acknowledged is missing.
//!
//! (SIGKILL tests the log, not the disk: the kernel keeps what a dead process wrote. Power cuts are tried on
//! the simulated disk of the `sim` feature.)

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use arborlog::{Epoch, Log, LogOptions, Zxid};

/// Threads that append at the same time and share group commits.
const WRITERS: u64 = 4;
/// Small segments, so that many rounds also kill the log while it goes from one to the next.
const SEGMENT_BYTES: u64 = 1024 * 1024;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [word, dir, epoch] = &words[..]
        && word == "--child"
    {
        append_for_ever(Path::new(dir), Epoch::new(epoch.parse()?))?;
        return Ok(ExitCode::SUCCESS);
    }
    let (rounds, parent_dir) = options(&words)?;
    let dir = tempfile::tempdir_in(parent_dir)?;
    let program = std::env::current_exe()?;
    let mut witness = Witness::default();
    for epoch in 1..=rounds {
        let mut command = Command::new(&program);
        command.arg("--child").arg(dir.path()).arg(epoch.to_string());
        witness.watch_and_kill(command, Duration::from_millis(300))?;
        let (log, report) = log_options().open(dir.path())?;
        witness.check(&log)?;
        println!(
            "round {epoch}: {} acknowledged so far, {} recovered, tail {}",
            witness.acknowledged.len(),
            witness.recovered,
            report.tail.as_str()
        );
        log.close()?;
    }
    let (acknowledged, recovered, missing) = (witness.acknowledged.len(), witness.recovered, witness.missing);
    println!("acknowledged={acknowledged} recovered={recovered} missing={missing}");
    // A run in which nothing was acknowledged has shown nothing.
    Ok(if missing == 0 && acknowledged > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn options(words: &[String]) -> Outcome<(u64, PathBuf)> {
    let (mut rounds, mut dir) = (5, std::env::temp_dir());
    for pair in words.chunks(2) {
        match pair {
            [option, value] if option == "--rounds" => rounds = value.parse()?,
            [option, value] if option == "--dir" => dir = value.into(),
            _ => {
                return Err(
                    format!("not understood: {}; known: --rounds N, --dir DIR", pair.join(" ")).into()
                );
            }
        }
    }
    Ok((rounds, dir))
}

pub(crate) fn log_options() -> LogOptions {
    LogOptions::new().segment_bytes(SEGMENT_BYTES)
}

/// The child's work. Ends only by being killed, or when nobody reads its output any more.
pub(crate) fn append_for_ever(dir: &Path, epoch: Epoch) -> Outcome<()> {
    let (log, _report) = log_options().open(dir)?;
    log.advance_epoch(epoch)?;
    std::thread::scope(|scope| {
        let append = |writer| append_and_tell(&log, epoch, writer).map_err(|error| error.to_string());
        let writers: Vec<_> = (0..WRITERS).map(|writer| scope.spawn(move || append(writer))).collect();
        writers.into_iter().try_for_each(|writer| writer.join().expect("a writer does not panic"))
    })?;
    Ok(())
}

/// One thread: append, wait until durable, and only then tell the world.
fn append_and_tell(log: &Log, epoch: Epoch, writer: u64) -> Outcome<()> {
    for number in 0.. {
        let ticket = log.append_next(epoch, 1_700_000_000_000, &payload(epoch, writer, number))?;
        let zxid = ticket.wait()?;
        let line = format!("durable {} {writer} {number}\n", zxid.get());
        // One write for the whole line: a killed process leaves no half of it.
        std::io::stdout().lock().write_all(line.as_bytes())?;
    }
    Ok(())
}

/// A payload tells who wrote it and as which of its own, and the rest of its bytes follow from that.
fn payload(epoch: Epoch, writer: u64, number: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(256);
    bytes.extend([epoch.get(), writer, number].iter().flat_map(|field| field.to_le_bytes()));
    let seed = writer.wrapping_mul(31).wrapping_add(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let filler = seed.to_le_bytes().into_iter().cycle();
    bytes.extend(filler.take(bytes[16].into()));
    bytes
}

/// Remembers what was acknowledged, and compares it with what a recovered log holds.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    /// Which writer's which record was acknowledged under a zxid.
    pub(crate) acknowledged: BTreeMap<Zxid, (u64, u64)>,
    /// Records that the log held when it was last checked.
    pub(crate) recovered: u64,
    /// Acknowledged records that it did not hold, or not under their zxids.
    pub(crate) missing: u64,
}

impl Witness {
    /// Starts a child, lets it work, kills it, and takes down all that it acknowledged.
    pub(crate) fn watch_and_kill(&mut self, mut command: Command, after: Duration) -> Outcome<()> {
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().expect("it was asked for");
        std::thread::scope(|scope| {
            let killer = scope.spawn(move || kill_after(child, after));
            // To the end: what the child wrote before it died is still in the pipe.
            let mut lines = BufReader::new(output);
            let mut line = String::new();
            while lines.read_line(&mut line)? > 0 {
                if let Some((zxid, writer, number)) = parse(&line) {
                    self.acknowledged.insert(zxid, (writer, number));
                }
                line.clear();
            }
            Ok(killer.join().expect("killing does not panic")?)
        })
    }

    /// Reads the whole log: nothing acknowledged may be missing, no payload wrong, no zxid left out.
    pub(crate) fn check(&mut self, log: &Log) -> Outcome<()> {
        let mut expected = self.acknowledged.iter().peekable();
        let mut next_numbers: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        let mut last = Zxid::ZERO;
        let mut reader = log.reader(Zxid::ZERO)?;
        (self.recovered, self.missing) = (0, 0);
        while let Some(record) = reader.next_record()? {
            let first_of_epoch = record.zxid.epoch() > last.epoch() && record.zxid.counter() == 1;
            if !first_of_epoch && record.zxid != last.next_in_epoch()? {
                return Err(format!("a gap: {} comes after {last}", record.zxid).into());
            }
            let (writer, number) = author(record.payload, record.zxid.epoch())?;
            // A thread waits for each record before the next one, so its numbers have no gap either.
            let next = next_numbers.entry((record.zxid.epoch().get(), writer)).or_default();
            if number != *next {
                return Err(format!(
                    "{}: writer {writer}'s {number} comes where {next} was due",
                    record.zxid
                )
                .into());
            }
            *next += 1;
            while let Some((zxid, told)) = expected.next_if(|(zxid, _)| **zxid <= record.zxid) {
                self.missing += u64::from((*zxid, *told) != (record.zxid, (writer, number)));
            }
            last = record.zxid;
            self.recovered += 1;
        }
        self.missing += expected.count() as u64;
        Ok(())
    }
}

/// Kills without a word of warning. A child that has ended by itself has failed.
#[expect(clippy::disallowed_methods, reason = "here a pause is meant to be nothing but a pause")]
fn kill_after(mut child: Child, after: Duration) -> std::io::Result<()> {
    std::thread::sleep(after);
    let ended = child.try_wait()?;
    child.kill()?;
    child.wait()?;
    match ended {
        None => Ok(()),
        Some(status) => Err(std::io::Error::other(format!("the child ended by itself: {status}"))),
    }
}

/// `durable ZXID WRITER NUMBER`; other lines are not the writers'.
fn parse(line: &str) -> Option<(Zxid, u64, u64)> {
    let mut words = line.strip_suffix('\n')?.strip_prefix("durable ")?.split(' ');
    let mut number = || words.next()?.parse().ok();
    Some((Zxid::new(number()?), number()?, number()?))
}

/// Who wrote a payload; an error if any byte of it is not what that writer wrote.
fn author(bytes: &[u8], epoch: Epoch) -> Outcome<(u64, u64)> {
    let field = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
    let (writer, number) = field(8).zip(field(16)).ok_or("a payload is too short")?;
    if bytes != payload(epoch, writer, number) {
        return Err(format!("the payload of writer {writer}, number {number}, is wrong").into());
    }
    Ok((writer, number))
}
