//! What arborlog is for: a coordination server's work is killed in the middle, again and again, and everything that
//! it acknowledged is there when it comes back, in a tree that is the same to the last bit.
//!
//! `cargo run --release --example coordination [-- --rounds N --dir DIR]`
//!
//! Each round starts this program again as a child. The child opens the engine and serves several clients at once:
//! sessions begin and end, ephemeral and sequential nodes come and go, locks are taken by multis, data are set, while
//! snapshots are written behind them. A client prints a request's zxid once it was answered, and what must be there
//! now. The parent kills the child with SIGKILL, opens the engine itself, and compares. The last line is
//! `acknowledged=N recovered=M missing=0 digest=ok`; the exit code is 1 if anything is missing or the digests differ.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use arborlog::{
    Acl, Caller, CreateMode, CreateRequest, DataTree, Engine, EngineOptions, LogOptions, OpenReport, Request,
    Retention, Txn, Zxid,
};

/// Clients at once, each with a session of its own.
const CLIENTS: i64 = 8;
/// What is waited for before the server is killed: more than a snapshot's worth of txns.
const ANSWERS_A_ROUND: usize = 4000;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [word, dir, round] = &words[..]
        && word == "--child"
    {
        serve_for_ever(Path::new(dir), round.parse()?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (rounds, parent) = options(&words)?;
    let dir = tempfile::tempdir_in(parent)?;
    let mut witness = Witness { digests_agree: true, ..Witness::default() };
    for round in 1..=rounds {
        witness.watch_and_kill(dir.path(), round)?;
        let (engine, report) = engine_options().open(dir.path())?;
        witness.check(&engine, &report);
        witness.compare(&engine, dir.path())?;
        println!("round {round}: {} acknowledged so far", witness.acknowledged.len());
        report.to_string().lines().for_each(|line| println!("    {line}"));
        engine.close()?;
    }
    let (acknowledged, recovered) = (witness.acknowledged.len(), witness.recovered);
    let (missing, digest) = (witness.missing, if witness.digests_agree { "ok" } else { "differs" });
    println!("acknowledged={acknowledged} recovered={recovered} missing={missing} digest={digest}");
    // A run in which nothing was acknowledged has shown nothing.
    let is_well = missing == 0 && acknowledged > 0 && witness.digests_agree;
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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

/// Small segments and frequent snapshots, so that many rounds also kill a roll or a snapshot. The whole log is kept, so
/// that the state can be made again from its first txn.
fn engine_options() -> EngineOptions {
    let log = LogOptions::new().segment_bytes(1 << 20);
    EngineOptions::new()
        .log(log)
        .snap_count(3000)
        .snapshots_kept(2)
        .log_retention(Retention::new().segments_min(1 << 20))
}

/// The child's work. Ends only by being killed, or when nobody reads its output any more.
fn serve_for_ever(dir: &Path, round: i64) -> Outcome<()> {
    let (engine, _report) = engine_options().open(dir)?;
    let acl = [Acl::open()];
    for path in ["/app", "/app/config", "/app/locks", "/app/queue", "/app/members"] {
        let create = Request::CreateIfAbsent(CreateRequest::new(path, b"", &acl));
        engine.submit(&create, &Caller::default())?.wait()?;
    }
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let engine = &engine;
                scope.spawn(move || {
                    be_a_client(engine, round * 1000 + client).map_err(|error| error.to_string())
                })
            })
            .collect();
        clients.into_iter().try_for_each(|client| client.join().expect("a client does not panic"))
    })?;
    Ok(())
}

/// One client: a session, a member of a group, a user of a lock and a queue; and then all of it again.
fn be_a_client(engine: &Engine, client: i64) -> Outcome<()> {
    let acl = [Acl::open()];
    for life in 0.. {
        let session_id = client * 1_000_000 + life + 1;
        let caller = Caller { session_id, ..Caller::default() };
        done(engine, &caller, &Request::CreateSession { timeout_ms: 10_000 }, "session")?;
        let member = format!("/app/members/{session_id}");
        let ephemeral =
            CreateRequest { mode: CreateMode::Ephemeral, ..CreateRequest::new(&member, b"up", &acl) };
        done(engine, &caller, &Request::Create(ephemeral), &member)?;
        for turn in 0..10 {
            let data = format!("{session_id}-{turn}");
            let item = CreateRequest {
                mode: CreateMode::PersistentSequential,
                ..CreateRequest::new("/app/queue/item-", data.as_bytes(), &acl)
            };
            let ticket = engine.submit(&Request::Create(item), &caller)?;
            let answer = ticket.wait()?;
            let path = answer.created_path(0).ok_or("a sequential node was not created")?.to_owned();
            tell(answer.zxid, &path)?;
            // Taken from the queue and noted in the config, both or neither.
            let note = [
                Request::Delete { path: &path, version: 0 },
                Request::SetData { path: "/app/config", data: Some(data.as_bytes()), version: -1 },
            ];
            done(engine, &caller, &Request::Multi(&note), &format!("-{path}"))?;
        }
        done(engine, &caller, &Request::CloseSession, &format!("-{member}"))?;
    }
    Ok(())
}

/// Asks, waits for the answer, and only then tells the world: the path that is there, or with a minus is gone.
fn done(engine: &Engine, caller: &Caller<'_>, request: &Request<'_>, what: &str) -> Outcome<()> {
    if let Some(path) = what.strip_prefix('-') {
        // From here on it may be gone, whether we live to tell or not.
        std::io::stdout().lock().write_all(format!("asked {path}\n").as_bytes())?;
    }
    let answer = engine.submit(request, caller)?.wait()?;
    if !answer.code().is_ok() {
        return Err(format!("{what}: {:?}", answer.code()).into());
    }
    tell(answer.zxid, what)
}

fn tell(zxid: Zxid, what: &str) -> Outcome<()> {
    // One write for the whole line: a killed process leaves no half of it.
    Ok(std::io::stdout().lock().write_all(format!("answered {} {what}\n", zxid.get()).as_bytes())?)
}

/// Remembers what was acknowledged, and compares it with what came back.
#[derive(Debug, Default)]
struct Witness {
    /// Paths whose deletion was asked for.
    asked: BTreeSet<String>,
    acknowledged: BTreeMap<Zxid, String>,
    recovered: u64,
    missing: u64,
    digests_agree: bool,
}

impl Witness {
    #[expect(clippy::disallowed_methods, reason = "a parent that watches a child: not the engine")]
    fn watch_and_kill(&mut self, dir: &Path, round: u64) -> Outcome<()> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("--child")
            .arg(dir)
            .arg(round.to_string())
            .stdout(Stdio::piped())
            .spawn()?;
        let lines = BufReader::new(child.stdout.take().ok_or("no output to read")?).lines();
        let (heard, answers) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            let mut read = Vec::new();
            for line in lines.map_while(Result::ok) {
                // Nobody listens any more once enough was heard.
                let _heard = heard.send(line.starts_with("answered"));
                read.push(line);
            }
            read
        });
        // Enough for a snapshot, however slow the machine is, and then some more.
        let enough = answers.into_iter().filter(|is_answer| *is_answer).take(ANSWERS_A_ROUND).count();
        if enough == ANSWERS_A_ROUND {
            std::thread::sleep(Duration::from_millis(200));
        }
        let ended_early = child.try_wait()?.is_some();
        child.kill()?;
        child.wait()?;
        for line in reader.join().map_err(|_| "the reader panicked")? {
            if let Some(path) = line.strip_prefix("asked ") {
                self.asked.insert(path.to_owned());
            }
            let mut words = line.splitn(3, ' ');
            if let (Some("answered"), Some(zxid), Some(what)) = (words.next(), words.next(), words.next()) {
                self.acknowledged.insert(Zxid::new(zxid.parse()?), what.to_owned());
            }
        }
        if ended_early { Err("the child ended by itself".into()) } else { Ok(()) }
    }

    fn check(&mut self, engine: &Engine, report: &OpenReport) {
        self.recovered = report.last_zxid.get();
        let last = report.last_zxid;
        let tree = engine.tree();
        // What was created is there, unless its deletion was asked for, and what was deleted is gone: no name is used twice.
        // The ephemeral nodes of a session that was killed stay, as nobody closes it here.
        let mut expected = BTreeMap::new();
        for (zxid, what) in &self.acknowledged {
            self.missing += u64::from(*zxid > last);
            match what.strip_prefix('-') {
                Some(gone) => expected.insert(gone, false),
                None if what.starts_with('/') && !self.asked.contains(what) => expected.insert(what, true),
                None => None,
            };
        }
        let differs = |(path, there): &(&&str, &bool)| tree.get(path).is_some() != **there;
        self.missing += expected.iter().filter(differs).count() as u64;
    }

    /// The state that came back, from a snapshot and what the log has behind it, against the one that all of the log makes,
    /// from its first txn.
    fn compare(&mut self, engine: &Engine, dir: &Path) -> Outcome<()> {
        let (log, _) = LogOptions::new().open_read_only(dir.join("log-1"))?;
        let mut records = log.records(Zxid::ZERO)?;
        let mut again = DataTree::new();
        while let Some(record) = records.next_record()? {
            again.apply(&Txn::decode(record.zxid, record.time_ms, record.payload)?, &mut ());
        }
        let tree = engine.tree();
        self.digests_agree &= again.digest() == tree.digest() && again.last_zxid() == tree.last_zxid();
        self.digests_agree &= again.sessions() == tree.sessions() && again.len() == tree.len();
        Ok(())
    }
}
