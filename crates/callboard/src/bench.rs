//! `callboard bench`: figures of this machine, ratios first.

use callboard_bench::{Figure, Goal, Options, Report, Row};
use serde_json::json;

use crate::args::BenchArgs;
use crate::failure::Failure;
use crate::output::{Output, table};

pub(crate) fn run(arguments: BenchArgs, output: &Output) -> Result<(), Failure> {
    let binary = std::env::current_exe()
        .map_err(|error| Failure::cannot_start(format!("cannot find this program: {error}")))?;
    if cfg!(debug_assertions) {
        output.note("This is a debug build: its figures say nothing. Use a release build.");
    }
    let options = Options {
        binary,
        figures: match arguments.figures {
            figures if figures.is_empty() => Figure::ALL.to_vec(),
            figures => figures,
        },
        quick: arguments.quick,
    };
    let measured = callboard_bench::run(&options, |what| {
        output.note(format!("measuring {what}"));
    });
    let report = measured.map_err(|error| {
        Failure::failed(format!("cannot measure {error:#}"))
            .hint("other figures can be measured alone: callboard bench FIGURE")
    })?;
    let rows: Vec<_> = report.rows.iter().map(as_json).collect();
    let machine: serde_json::Map<_, _> = report
        .machine
        .iter()
        .map(|(name, fact)| ((*name).to_owned(), json!(fact)))
        .collect();
    let value = json!({
        "machine": machine, "debug_build": cfg!(debug_assertions), "quick": options.quick,
        "figures": rows,
    });
    output.data(&value, || lines(&report));
    Ok(())
}

fn as_json(row: &Row) -> serde_json::Value {
    json!({
        "figure": row.figure, "unit": row.unit, "ours": row.ours, "baseline": row.baseline,
        "ratio": row.ratio(), "goal": row.goal, "met": row.is_met(),
    })
}

fn lines(report: &Report) -> Vec<String> {
    let mut lines: Vec<_> = report
        .machine
        .iter()
        .map(|(name, fact)| format!("{name:<18}{fact}"))
        .collect();
    lines.push(String::new());
    let head = ["ratio", "ours", "baseline", "goal", "", "figure"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(report.rows.iter().map(columns));
    lines.extend(table(&rows));
    lines
}

fn columns(row: &Row) -> Vec<String> {
    let figure = |figure: Option<f64>| match figure {
        Some(figure) => format!("{} {}", number(figure), row.unit)
            .trim_end()
            .to_owned(),
        None => String::new(),
    };
    let goal = row.goal.map(|goal| match goal {
        Goal::RatioAtMost(most) => format!("ratio ≤ {most}"),
        Goal::RatioAtLeast(least) => format!("ratio ≥ {least}"),
        Goal::AtMost(most) => format!("≤ {}", number(most)),
        Goal::AtLeast(least) => format!("≥ {}", number(least)),
    });
    let met = row.is_met().map(|met| if met { "met" } else { "NOT MET" });
    vec![
        row.ratio()
            .map(|ratio| format!("{ratio:.2} ×"))
            .unwrap_or_default(),
        figure(row.ours),
        figure(row.baseline),
        goal.unwrap_or_default(),
        met.unwrap_or_default().to_owned(),
        row.figure.clone(),
    ]
}

/// Three digits or so, whatever the size.
fn number(figure: f64) -> String {
    match figure.abs() {
        size if size >= 100.0 => format!("{figure:.0}"),
        size if size >= 10.0 => format!("{figure:.1}"),
        size if size >= 1.0 || size == 0.0 => format!("{figure:.2}"),
        _ => format!("{figure:.3}"),
    }
}
