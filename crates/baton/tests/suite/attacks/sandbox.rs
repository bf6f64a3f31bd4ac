//! Commands and MCP servers: what they see of the machine, and what they can consume.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use baton_sandbox::{Isolation, Launcher};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use serde_json::json;

use super::{Call, Installation, SECRET, SERVER_SECRET, mcp, probe, read_file, shell, write_file};
use crate::served::LONG;

#[test]
fn h3_programs_see_neither_the_environment_of_the_server_nor_its_processes() {
    let installation = Installation::new("");
    let served = installation.serve();
    let pid = served.child.id();
    assert!(
        String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/environ")).unwrap()).contains(SERVER_SECRET.1)
    );
    let eve = installation.person(&served, "globex", "eve");
    eve.attack(&[
        shell("env; set; cat /proc/self/environ /proc/1/environ"),
        shell(format!("cat /proc/{pid}/environ; tr '\\0' '\\n' < /proc/{pid}/environ; ls -l /proc/{pid}/")),
        shell("for p in /proc/[0-9]*; do cat $p/environ; cat $p/root/proc/1/environ; done"),
        ("mcp__probe__environment", json!({})),
        mcp("mcp__probe__read", format!("/proc/{pid}/environ")),
        mcp("mcp__probe__read", "/proc/1/environ"),
    ]);
    let seen = eve.calls(&[shell(format!("kill -9 {pid}; kill -9 -1; echo done")), shell("ps ax | wc -l")]);
    assert!(seen.contains("done") || seen.contains("exit code"), "{seen}");
    assert_eq!(eve.ask("GET", "/livez", "").0, 200, "the server was not killed");
}

#[test]
fn h3_the_network_needs_permission() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    listener.set_nonblocking(true).unwrap();
    let installation = Installation::new("");
    let served = installation.serve();
    let eve = installation.person(&served, "globex", "eve");
    let connect: Call = ("mcp__probe__connect", json!({ "port": port }));
    let udp = "const s = require('node:dgram').createSocket('udp4'); s.on('error', (e) => console.log('refused', e.code)); \
               s.send('x', 53, '127.0.0.1', (e) => { console.log(e ? 'refused ' + e.code : 'sent'); process.exit(); })";
    let tried = eve.calls(&[
        connect.clone(),
        shell(format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected'")),
        shell(format!("node -e \"{udp}\"")),
    ]);
    assert!(tried.contains("refused: E") && tried.contains("refused E"), "{tried}");
    assert!(tried.contains("/dev/tcp/127.0.0.1"), "bash has tried: {tried}");
    assert!(!tried.contains("connected") && !tried.contains("sent"), "{tried}");
    assert!(listener.accept().is_err(), "no connection was made");

    // The same with permission.
    let installation = Installation::new("network = true\n");
    let mut allowed = probe();
    allowed["network"] = json!(true);
    let servers = json!({"mcpServers": {"probe": allowed}});
    fs::write(installation.path().join(".mcp.json"), servers.to_string()).unwrap();
    let served = installation.serve();
    let eve = installation.person(&served, "globex", "eve");
    let bash = format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected'");
    let made = eve.calls(&[connect, shell(bash)]);
    assert_eq!(made.matches("connected").count(), 2, "{made}");
}

/// Processes, memory and files. The server answers others meanwhile.
#[test]
fn h3_programs_are_bounded() {
    let limits =
        "[sandbox]\nmemory_bytes = 209715200\nprocesses = 64\nfile_bytes = 33554432\ndisk_bytes = 67108864\n";
    let installation = Installation::new(limits);
    let served = installation.serve();
    let (ada, eve) =
        (installation.person(&served, "acme", "ada"), installation.person(&served, "globex", "eve"));
    std::thread::scope(|scope| {
        let bomb =
            scope.spawn(|| eve.elsewhere().calls(&[shell("f() { f | f & }; f; sleep 1; f; echo end")]));
        let hogs = scope.spawn(|| {
            let one = "node -e \"const all = []; for (;;) all.push(Buffer.alloc(1 << 20, 1))\"; echo one ended";
            let many = "for i in 1 2 3 4 5 6 7 8; do head -c 60000000 /dev/zero | tail -n 1 | sleep 5 & done; wait; echo survived";
            eve.elsewhere().calls(&[shell(one), shell(many)])
        });
        let filler = scope.spawn(|| {
            let large = "head -c 100000000 /dev/zero > large; ls -l large";
            let many = "i=0; while :; do head -c 10000000 /dev/zero > f$i; i=$((i+1)); done";
            let person = eve.elsewhere();
            let answers = [person.calls(&[shell(large)]), person.calls(&[shell(many)])];
            let used: u64 = fs::read_dir(installation.workspace(&person))
                .unwrap()
                .flatten()
                .map(|file| file.metadata().unwrap().len())
                .sum();
            let emptied = person.calls(&[shell("rm -f f* large; ls; echo emptied")]);
            (answers, used, emptied)
        });
        for _ in 0..5 {
            let answer = ada.calls(&[write_file("a.md", "still"), read_file("a.md")]);
            assert!(answer.contains("still"), "{answer}");
        }
        let bomb = bomb.join().unwrap();
        assert!(bomb.contains("fork"), "{bomb}");
        let hogs = hogs.join().unwrap();
        assert!(hogs.contains("one ended") || hogs.contains("of memory were used"), "{hogs}");
        assert!(!hogs.contains("survived"), "{hogs}");
        let ([large, many], used, emptied) = filler.join().unwrap();
        assert!(large.contains("33554432"), "{large}");
        assert!(many.contains("more than 64 MiB"), "{many}");
        assert!(used < 1 << 30, "{used}");
        assert!(emptied.contains("emptied"), "a full work folder can be emptied: {emptied}");
    });
    assert_eq!(ada.ask("GET", "/readyz", "").0, 200);
}

/// Also what made itself a session of its own, and what is left when the server is killed.
#[test]
fn h3_nothing_outlives_a_command_or_the_server() {
    let installation = Installation::new("");
    let mut served = installation.serve();
    let eve = installation.person(&served, "globex", "eve");
    let tick = "setsid sh -c 'while :; do date +%N > tick; sleep 0.05; done' > /dev/null 2>&1 &";
    eve.calls(&[shell(format!("{tick} sleep 0.3; cat tick"))]);
    let file = installation.workspace(&eve).join("tick");
    assert!(file.exists());
    until_still(&file);
    fs::remove_file(&file).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let path = format!("/api/v1/threads/{}/messages", eve.thread);
            let script = serde_json::to_string(&[shell(format!("{tick} sleep 1000"))]).unwrap();
            let body = json!({ "content": script }).to_string();
            let asked = std::panic::catch_unwind(|| eve.ask("POST", &path, &body));
            assert!(asked.is_err(), "the server was killed");
        });
        let since = Instant::now();
        while !file.exists() {
            assert!(since.elapsed() < LONG, "the command does not run");
            std::thread::sleep(Duration::from_millis(20));
        }
        served.child.kill().unwrap();
        served.child.wait().unwrap();
    });
    until_still(&file);
}

/// Waits until a file that is written all the time is written no more.
fn until_still(file: &Path) {
    for _ in 0..10 {
        let before = fs::read_to_string(file).unwrap_or_default();
        std::thread::sleep(Duration::from_secs(1));
        if fs::read_to_string(file).unwrap_or_default() == before {
            return;
        }
    }
    panic!("{} is still written", file.display());
}

/// The loader of the launcher, which is not confined yet, would write its trace to the `/tmp` of the machine.
#[test]
fn h3_variables_of_an_mcp_server_do_not_reach_the_launcher() {
    let installation = Installation::new("");
    let trace = format!("baton-trace-{}", uuid::Uuid::new_v4());
    let mut traced = probe();
    traced["env"] = json!({"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": format!("/tmp/{trace}"), "OWN": "is set"});
    let servers = json!({"mcpServers": {"probe": traced}});
    fs::write(installation.path().join(".mcp.json"), servers.to_string()).unwrap();
    let served = installation.serve();
    let eve = installation.person(&served, "globex", "eve");
    let seen = eve.calls(&[("mcp__probe__environment", json!({})), mcp("mcp__probe__list", "/tmp")]);
    assert!(seen.contains("is set") && !seen.contains("BATON_SANDBOX"), "{seen}");
    assert!(seen.contains(&format!("{trace}.")), "the server itself is traced: {seen}");
    let names = fs::read_dir("/tmp").unwrap().flatten().map(|entry| entry.file_name());
    let left: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with(&trace)).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn h3_devices_and_limits_of_others_are_refused() {
    let installation = Installation::new("");
    let commands = "mknod null c 1 3 && echo made a device; mkfifo pipe && echo made a pipe; sleep 5 & prlimit --pid $! --nofile=8 && echo limited";
    let namespaces = installation.serve();
    let eve = installation.person(&namespaces, "globex", "eve");
    let with_namespaces = eve.calls(&[shell(commands)]);
    drop(namespaces);
    let landlock = without(&[NO_NAMESPACES], || installation.serve());
    let with_landlock = eve.elsewhere().at(&landlock).calls(&[shell(commands)]);
    for seen in [with_namespaces, with_landlock] {
        assert!(seen.contains("made a pipe"), "{seen}");
        assert!(!seen.contains("made a device") && !seen.contains("limited"), "{seen}");
    }
}

/// The data folder and the configuration are below a path that commands can read.
#[test]
fn h3_a_server_whose_files_are_readable_refuses_to_start() {
    let installation = Installation::new("read = [\".\"]\n");
    let mut serve = Command::new(env!("CARGO_BIN_EXE_baton"));
    serve.args(["serve", "--listen", "127.0.0.1:0"]).current_dir(installation.path());
    let refused = serve.output().unwrap();
    let problem = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(3), "{problem}");
    assert!(problem.contains("programs in the sandbox can read"), "{problem}");
}

/// Runs `work` in a thread whose processes cannot use these system calls.
fn without<T: Send>(calls: &[i64], work: impl FnOnce() -> T + Send) -> T {
    let rules = calls.iter().map(|call| (*call, Vec::new())).collect();
    let (refused, arch) = (SeccompAction::Errno(1), std::env::consts::ARCH.try_into().unwrap());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, arch).unwrap();
    let filter = BpfProgram::try_from(filter).unwrap();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            seccompiler::apply_filter(&filter).unwrap();
            work()
        });
        thread.join().unwrap()
    })
}

const NO_NAMESPACES: i64 = libc::SYS_unshare;
const NO_LANDLOCK: i64 = libc::SYS_landlock_create_ruleset;

#[test]
fn h3_a_server_without_a_sandbox_refuses_to_start() {
    let installation = Installation::new("");
    let serve = || {
        let args = ["serve", "--listen", "127.0.0.1:0"];
        Command::new(env!("CARGO_BIN_EXE_baton"))
            .args(args)
            .current_dir(installation.path())
            .output()
            .unwrap()
    };
    let refused = without(&[NO_NAMESPACES, NO_LANDLOCK], serve);
    let problem = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(3), "{problem}");
    assert!(problem.contains("no sandbox") && problem.contains("sandbox = \"off\""), "{problem}");
    // What is switched off needs none.
    let config = fs::read_to_string(installation.path().join("baton.toml")).unwrap();
    let config = config.replace("enabled = true", "enabled = true\nsandbox = \"off\"");
    fs::write(installation.path().join("baton.toml"), config + "[mcp]\nsandbox = \"off\"\n").unwrap();
    let served = without(&[NO_NAMESPACES, NO_LANDLOCK], || installation.serve());
    let eve = installation.person(&served, "globex", "eve");
    assert!(eve.calls(&[shell("echo $((40 + 2)) is here")]).contains("42 is here"));
}

/// In a container without user namespaces.
#[test]
fn h3_landlock_alone_confines_programs() {
    let installation = Installation::new("");
    let served = without(&[NO_NAMESPACES], || installation.serve());
    let eve = installation.person(&served, "globex", "eve");
    let root = installation.path().canonicalize().unwrap();
    let (root, pid) = (root.display(), served.child.id());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    eve.attack(&[
        shell(format!(
            "cat {root}/baton.toml {root}/.mcp.json {root}/agents/a.md {root}/baton.db /proc/{pid}/environ"
        )),
        shell(format!(
            "ls {root} {root}/data; chmod 0 {root}/baton.toml; kill -9 {pid}; echo x > {root}/baton.toml"
        )),
        shell(format!("ln -s {root}/baton.toml l; cat l; ln {root}/baton.toml h; cat h")),
        read_file("l"),
        mcp("mcp__probe__read", installation.path().join("baton.toml")),
        ("mcp__probe__connect", json!({ "port": port })),
    ]);
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "no connection was made");
    let own = eve.calls(&[shell("echo mine > a.md; cat a.md"), mcp("mcp__probe__read", "a.md")]);
    assert_eq!(own.matches("mine").count(), 2, "{own}");
    assert!(fs::read_to_string(installation.path().join("baton.toml")).unwrap().contains(SECRET));
}

#[test]
fn this_machine_has_namespaces() {
    let launcher = Launcher::at(env!("CARGO_BIN_EXE_baton"));
    assert_eq!(
        launcher.isolation(),
        Ok(Isolation::Namespaces),
        "the other tests here show nothing without them"
    );
    assert!(Launcher::at("/bin/false").isolation().is_err());
}

/// A15: files of workspaces count as stored bytes of their user. File tools refuse what does not fit, programs that exceed it are ended,
/// nothing more is accepted, and deleting makes room.
#[test]
fn a15_files_count_as_stored_bytes() {
    let installation = Installation::new("[limits]\nmax_stored_bytes_per_user = 500000\n");
    let served = installation.serve();
    let (ada, bob) =
        (installation.person(&served, "acme", "ada"), installation.person(&served, "acme", "bob"));
    // Stored twice: as a part of the message, and as a file.
    let text = "x".repeat(150_000);
    let wrote = ada.calls(&[write_file("one.md", &text)]);
    assert!(wrote.contains("Wrote one.md"), "{wrote}");
    let other = ada.elsewhere();
    let refused = other.calls(&[write_file("two.md", &text)]);
    assert!(refused.contains("bytes left. Nothing was written"), "{refused}");
    assert!(!installation.workspace(&other).join("two.md").exists());
    assert!(bob.calls(&[write_file("his.md", &text)]).contains("Wrote his.md"), "another user");

    // A program writes more than is left: it is ended, and what it has written counts.
    let more = write_file("more.md", "more");
    let flood = shell("head -c 3000000 /dev/zero > big; sleep 20; echo not-ended");
    let flooded = bob.calls(&[flood, more.clone()]);
    assert!(
        flooded.contains("sandbox: ended") && flooded.contains("0 bytes left. Nothing was written"),
        "{flooded}"
    );
    assert!(!installation.workspace(&bob).join("more.md").exists());
    let path = format!("/api/v1/threads/{}/messages", bob.thread);
    let (status, _, refused) = bob.ask("POST", &path, &json!({"content": "Hello"}).to_string());
    assert!(status == 413 && refused.contains("storage_full"), "{status} {refused}");
    assert_eq!(bob.ask("DELETE", &format!("/api/v1/threads/{}", bob.thread), "").0, 204);
    let again = bob.elsewhere();
    let until = Instant::now() + LONG;
    while again.ask("POST", &format!("/api/v1/threads/{}/messages", again.thread), "{\"content\": \"[]\"}").0
        == 413
    {
        assert!(Instant::now() < until, "deleting makes no room");
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(again.calls(&[more]).contains("Wrote more.md"));
}

/// H3: in open mode the project is the work folder. A command cannot leave configuration there that the next start would use.
#[test]
fn h3_commands_cannot_create_configuration_of_the_server() {
    let installation = Installation::with_mode("open", "");
    fs::remove_file(installation.path().join(".mcp.json")).unwrap();
    let agent = "---\ndescription: Runs the requested tools.\ntools: [shell]\n---\nYou help.\n";
    fs::write(installation.path().join("agents/a.md"), agent).unwrap();
    let served = installation.serve();
    let person = super::Person::new(&served, "default", None);
    let evil = "echo '{\"mcpServers\": {\"evil\": {\"command\": \"sh\"}}}' > .mcp.json; ls -a";
    let answer = person.calls(&[shell(evil)]);
    assert!(answer.contains("renamed to .mcp.json.refused"), "{answer}");
    assert!(!installation.path().join(".mcp.json").exists());
    assert!(installation.path().join(".mcp.json.refused").exists());
}
