//! What people type wrong: one sentence, one exit code, and nothing is changed.

use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

use crate::process::{Outcome, callboard, run, run_between};
use crate::rig::{Rig, graph};

/// Exit codes: the thing asked for failed, the command line is wrong, something is not there.
const FAILED: i32 = 1;
const USAGE: i32 = 2;
const UNREACHABLE: i32 = 3;

/// What is typed, the exit code, a part of the sentence, a part of the hint. Words in capitals
/// stand for a name that is too long or empty, and for an id that nobody has.
const ON_THE_HUB: &str = r#"
project create LONG                      | 1 | name          |
project create EMPTY                     | 1 | name          |
project create Home                      | 1 | already taken |
desktop create LONG                      | 1 | name          |
desktop create laptop                    | 1 | already taken |
desktop rebind nobody                    | 1 | nobody        |
token create --name LONG --project Home  | 1 | name          |
token create --name new --project nobody | 1 | nobody        |
token create --name Claude --project Home | 1 | already taken |
token revoke nobody                      | 1 | nobody        |
token create --name new                  | 2 | --project     |
token create --name n --project Home --scope all | 2 | 'all' for '--scope |
serve --listen nowhere                   | 2 | 'nowhere' for '--listen |
serve --public-url nowhere               | 2 | public_url must look like https:// |
serve --config /nowhere/at-all           | 2 | cannot read /nowhere/at-all |
shout                                    | 2 | 'shout'       |
"#;

const ON_THE_DESKTOP: &str = r#"
graph show none                          | 1 | no Graph is called "none"      | graph list
graph run none                           | 1 | no Graph is called "none"      | graph list
graph remove none                        | 1 | no Graph is called "none"      | graph list
graph share none --project Home          | 1 | no Graph is called "none"      | graph list
graph share ask --project none           | 1 | no project is called "none"    | project list
graph unshare none --project Home        | 1 | no Graph is called "none"      | graph list
graph run ask --args {                   | 2 | --args is not JSON             |
graph run ask --args []                  | 2 | --args must be a JSON object   |
graph add /nowhere/at-all.js             | 2 | cannot read /nowhere/at-all.js |
desktop run --hub x --token-file /no/file | 2 | cannot read /no/file           | hub desktop create
project enable none                      | 1 | no project is called "none"    | project list
folder grant /nowhere/at-all             | 1 | cannot look into               |
folder revoke /nowhere/at-all            | 1 | is not granted                 | folder list
runs show UNKNOWN                        | 1 | UNKNOWN                        | runs list
runs show no                             | 1 | "no"                           |
runs cancel UNKNOWN                      | 1 | UNKNOWN                        | runs list
"#;

const IN_THE_CHAT: &str = r#"
get UNKNOWN                              | 1 | Graph run not found or access removed |
sessions --url nowhere                   | 2 | "nowhere" is not the address of a hub | --url https://
get no-id-at-all                         | 1 | Graph run not found or access removed |
get UNKNOWN --wait                       | 1 | Graph run not found or access removed |
cancel UNKNOWN                           | 1 | Graph run not found or access removed |
cancel no-id-at-all                      | 1 | Graph run not found or access removed |
sessions --project none                  | 1 | no project `none`                     | client sessions
run none                                 | 1 | no shared Graph is called `none`      | client sessions
run gs_0                                 | 1 | Graph session not found or access     |
run ask --args {                         | 2 | --args is not JSON                    |
run ask --args 7                         | 2 | --args must be a JSON object          |
run ask --idempotency-key short          | 1 | idempotency_key                       |
"#;

/// Checks each line of a table as people see it, and as programs do.
async fn check(table: &str, mut command: impl AsyncFnMut(&[&str]) -> Outcome) {
    let unknown = "019370c0-0000-7000-8000-000000000000";
    let long = "x".repeat(201);
    for line in table.lines().filter(|line| !line.is_empty()) {
        let cells: Vec<_> = line.split(" |").map(str::trim).collect();
        let [typed, code, message, hint] = cells[..] else {
            panic!("a line has four cells: {line}");
        };
        let mut arguments: Vec<_> = typed
            .split_whitespace()
            .map(|word| match word {
                "LONG" => long.as_str(),
                "EMPTY" => "",
                "UNKNOWN" => unknown,
                word => word,
            })
            .collect();
        let code = code.parse().unwrap();
        let message = message.replace("UNKNOWN", unknown);
        let for_people = command(&arguments).await;
        assert_eq!(for_people.stdout, "", "{for_people:#?}");
        for_people.refused(code, &message, hint);

        arguments.push("--json");
        let for_programs = command(&arguments).await;
        assert_eq!(for_programs.code, Some(code), "{for_programs:#?}");
        assert_eq!(for_programs.stderr, "", "{for_programs:#?}");
        let value = for_programs.json();
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        assert!(text("error").contains(&message), "{value:#}");
        assert!(text("hint").contains(hint), "{value:#}");
    }
}

#[tokio::test]
async fn unknown_and_malformed_things_are_refused_in_one_sentence() {
    let rig = Rig::with_graph().await;
    check(ON_THE_HUB, async |typed| rig.hub(typed).await).await;
    check(ON_THE_DESKTOP, async |typed| rig.desk(typed).await).await;
    check(IN_THE_CHAT, async |typed| rig.client(typed).await).await;
    rig.works().await;
    assert_eq!(rig.model.asked(), 1, "nothing of it ran");
}

#[tokio::test]
async fn a_graph_with_a_syntax_error_is_refused_with_line_column_and_caret() {
    let rig = Rig::with_desktop().await;
    let file = rig.folder().join("nightly.js");
    let source = "export const meta = { name: 'nightly', description: 'x' };\n\nawait agent('a', { schema: S );\n";
    std::fs::write(&file, source).unwrap();
    let file = file.to_str().unwrap();
    let refused = rig.desk(&["graph", "add", file]).await;
    refused.refused(
        FAILED,
        "graph \"nightly\" was not added: line 3, column ",
        "",
    );
    let lines: Vec<_> = refused.stderr.lines().collect();
    let shown = lines
        .iter()
        .position(|line| line.contains("3 | await agent('a', { schema: S );"));
    let caret = lines[shown.unwrap() + 1];
    assert!(
        caret.trim_start().starts_with('|') && caret.ends_with('^'),
        "{refused:#?}"
    );
    let column: usize = refused
        .stderr
        .split("column ")
        .nth(1)
        .unwrap()
        .split(':')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(
        caret.find('^').unwrap(),
        "  3 | ".len() + column - 1,
        "{refused:#?}"
    );
    rig.desk(&["graph", "check", file])
        .await
        .refused(FAILED, "line 3, column ", "");
    assert_eq!(
        rig.desk(&["graph", "list", "--json"]).await.ok().json(),
        serde_json::json!([])
    );
    for (name, source) in [
        ("empty.js", &b""[..]),
        ("binary.js", b"\xff\xfe\0"),
        ("no-meta.js", b"return 1;"),
    ] {
        let file = rig.folder().join(name);
        std::fs::write(&file, source).unwrap();
        let refused = rig.desk(&["graph", "add", file.to_str().unwrap()]).await;
        assert!(matches!(refused.code, Some(FAILED | USAGE)), "{refused:#?}");
        refused.refused(refused.code.unwrap(), "error: ", "");
    }
}

#[tokio::test]
async fn a_text_from_the_editor_that_is_refused_is_not_lost() {
    let rig = Rig::with_graph().await;
    let broken = rig.folder().join("broken.js");
    std::fs::write(&broken, graph("ask", "return ;;)")).unwrap();
    let edit = |editor: String| {
        let mut command = callboard(&rig.desktop_data());
        command.args(["graph", "edit", "ask"]).env_remove("VISUAL");
        run_with(command, editor, rig.folder())
    };
    let refused = edit(format!("cp {}", broken.display())).await;
    refused.refused(FAILED, "line 2, column ", "your text is kept");
    let kept = refused.stderr.trim_end().rsplit(' ').next().unwrap();
    assert_eq!(
        std::fs::read(kept).unwrap(),
        std::fs::read(&broken).unwrap()
    );
    let unchanged = edit("true".to_owned()).await.ok();
    assert!(
        unchanged.stderr.contains("nothing changed"),
        "{unchanged:#?}"
    );
    let gave_up = edit("false".to_owned()).await;
    gave_up.refused(FAILED, "nothing was changed", "");
    let absent = edit("no-such-editor".to_owned()).await;
    absent.refused(
        UNREACHABLE,
        "cannot start the editor no-such-editor",
        "EDITOR",
    );
    rig.works().await;
}

async fn run_with(mut command: Command, editor: String, temporary: &Path) -> Outcome {
    command.env("EDITOR", editor).env("TMPDIR", temporary);
    run(command).await
}

#[tokio::test]
async fn a_wrong_token_and_a_hub_that_is_not_there_are_told_apart() {
    let rig = Rig::with_graph().await;
    let mut stranger = rig.client_command(&["sessions"]);
    stranger.env("CALLBOARD_TOKEN", "cb_nobody");
    run(stranger)
        .await
        .refused(FAILED, "does not know this token", "hub token list");
    let nowhere = format!("http://127.0.0.1:{}/mcp", crate::rig::free_port());
    let mut nobody = rig.client_command(&["sessions"]);
    nobody.env("CALLBOARD_URL", &nowhere);
    run(nobody).await.refused(
        UNREACHABLE,
        &format!("cannot reach {nowhere}"),
        "callboard up",
    );
    let mut empty = callboard(&rig.folder().join("empty"));
    empty.args(["client", "sessions"]);
    run(empty)
        .await
        .refused(USAGE, "no `callboard up` has run in", "--url and --token");
}

#[tokio::test]
async fn without_a_running_desktop_its_commands_say_how_to_start_one() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let file = folder.path().join("alone.js");
    std::fs::write(&file, graph("alone", "return 1;")).unwrap();
    let file = file.to_str().unwrap();
    let commands: &[&[&str]] = &[
        &["desktop", "status"],
        &["graph", "list"],
        &["graph", "add", file],
        &["graph", "run", "x"],
        &["project", "list"],
        &["folder", "list"],
        &["runs", "list"],
        &["runs", "watch"],
    ];
    for arguments in commands {
        let mut command = callboard(&data);
        command.args(*arguments);
        let start_one = "callboard desktop run";
        run(command)
            .await
            .refused(UNREACHABLE, "no desktop is running on", start_one);
    }
    let mut check = callboard(&data);
    check.args(["graph", "check", file]);
    run(check).await.ok();
    assert!(!data.exists(), "none of it makes a folder");
}

#[tokio::test]
async fn a_text_from_a_broken_pipe_or_without_end_is_refused_before_anything_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("input");
    let nothing = "cannot read the standard input: it holds nothing";
    let too_long = "the text is too long: 8000 characters are the most";
    for (text, sentence) in [
        (Vec::new(), nothing),
        (b" \n".to_vec(), nothing),
        (b"a".repeat(9_000_000), too_long),
        ("\u{65e5}".repeat(8_001).into_bytes(), too_long),
        (
            vec![b'a', 0xff],
            "cannot read the standard input: it is not UTF-8",
        ),
    ] {
        std::fs::write(&input, text).unwrap();
        let data = folder.path().join("data");
        let mut command = callboard(&data);
        command.args(["--json", "task", "assign", "somebody", "-"]);
        let stdin = Stdio::from(std::fs::File::open(&input).unwrap());
        let outcome = run_between(stdin, Stdio::piped(), command).await;
        outcome.fails(USAGE, sentence);
        assert!(!data.join("hub").exists(), "nothing was made");
    }
}
