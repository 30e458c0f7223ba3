//! The Graphs we ship, run as they are.

use std::path::Path;

use callboard_agents::{Agents, ScriptedProvider, ScriptedReply, Tools};
use callboard_fleet::{Event, FleetStatus};
use serde_json::{Value, json};

use crate::harness::{block_on, fleet, fleet_with, request, run_request};

crate::runner::suite![
    every_shipped_graph_passes_the_check,
    hello_greets_whom_it_is_told_to,
    folder_report_reports_on_a_granted_folder_without_any_model,
    summarise_reads_every_text_file_and_says_so_when_there_is_no_provider,
];

fn example(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/graphs");
    std::fs::read_to_string(folder.join(name)).expect("the example exists")
}

fn every_shipped_graph_passes_the_check() {
    block_on(async {
        let fleet = fleet();
        for name in ["hello", "folder-report", "summarise"] {
            let meta = fleet.check(&example(&format!("{name}.js"))).await;
            assert_eq!(meta.map(|meta| meta.name), Ok(name.to_owned()));
        }
    });
}

fn hello_greets_whom_it_is_told_to() {
    block_on(async {
        let mut request = request(example("hello.js"));
        request.arguments = json!({ "name": "\u{d55c}\u{1F600}" }).to_string();
        let (finished, events) = run_request(&fleet(), request).await;
        assert_eq!(finished.status, FleetStatus::Completed, "{finished:?}");
        let result: Value = serde_json::from_str(&finished.result.unwrap()).unwrap();
        assert_eq!(result["greeting"], "Hello, \u{d55c}\u{1F600}!");
        assert_eq!(
            events,
            [
                Event::Started {
                    run_id: "run-1".to_owned()
                },
                Event::Phase {
                    title: "greeting".to_owned()
                },
                Event::Log {
                    message: "greeting \u{d55c}\u{1F600}".to_owned()
                },
            ]
        );
    });
}

/// A folder with two text files, a binary one and a subfolder.
fn notes() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.md"), "one\ntwo\n").unwrap();
    std::fs::write(folder.path().join("b.bin"), [0_u8; 3]).unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    std::fs::write(folder.path().join("sub/c.txt"), "\u{d55c}".repeat(100)).unwrap();
    folder
}

fn folder_report_reports_on_a_granted_folder_without_any_model() {
    block_on(async {
        let folder = notes();
        let tools = Tools::new(vec![folder.path().to_owned()]);
        let mut request = request(example("folder-report.js"));
        request.arguments = json!({ "folder": folder.path() }).to_string();
        let (finished, _) = run_request(&fleet_with(Agents::none(), tools), request).await;
        assert_eq!(finished.status, FleetStatus::Completed, "{finished:?}");
        assert_eq!(finished.total_tokens, 0);
        let result: Value = serde_json::from_str(&finished.result.unwrap()).unwrap();
        assert_eq!(
            json!({ "files": result["files"], "folders": result["folders"], "bytes": result["bytes"],
                "largest": result["largest"], "kinds": result["kinds"], "summary": result["summary"] }),
            json!({ "files": 3, "folders": 1, "bytes": 311,
                "largest": [
                    { "path": "sub/c.txt", "bytes": 300, "lines": 1, "text": true },
                    { "path": "a.md", "bytes": 8, "lines": 3, "text": true },
                    { "path": "b.bin", "bytes": 3, "lines": null, "text": false },
                ],
                "kinds": { "md": 1, "bin": 1, "txt": 1 },
                "summary": "3 files, 1 folders, 311 B \u{b7} largest: sub/c.txt (300 B)" })
        );
    });
}

fn summarise_reads_every_text_file_and_says_so_when_there_is_no_provider() {
    block_on(async {
        let folder = notes();
        let tools = Tools::new(vec![folder.path().to_owned()]);
        let mut request = request(example("summarise.js"));
        request.arguments = json!({ "folder": folder.path() }).to_string();
        let provider = ScriptedProvider::by_rule(|request, _| match request.schema {
            Some(_) => ScriptedReply::text(r#"{"summary":"s","topics":["t"]}"#, 100),
            None => ScriptedReply::text("an overview", 50),
        });
        let fleet = fleet_with(Agents::scripted(provider.clone()), tools.clone());
        let (finished, _) = run_request(&fleet, request.clone()).await;
        assert_eq!(finished.status, FleetStatus::Completed, "{finished:?}");
        assert_eq!((finished.total_tokens, finished.calls.started), (250, 6));
        let result: Value = serde_json::from_str(&finished.result.unwrap()).unwrap();
        assert_eq!(result["overview"], "an overview");
        assert_eq!(
            result["files"][1],
            json!({ "path": "sub/c.txt", "summary": "s", "topics": ["t"] })
        );
        assert!(
            provider
                .prompts()
                .iter()
                .any(|prompt| prompt.contains("one\ntwo"))
        );

        let (finished, _) = run_request(&fleet_with(Agents::none(), tools), request).await;
        assert_eq!(finished.status, FleetStatus::Failed);
        assert!(
            finished.failures[0].message.contains("[providers.NAME]"),
            "{finished:?}"
        );
    });
}
