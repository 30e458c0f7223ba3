//! `callboard sim tables` and `callboard sim bands`.

use std::path::Path;

use callboard_sim::tables::{Bands, Kind, Line, SEED, Unit, lines, reseed};
use serde_json::{Value, json};

use super::{page, plots};
use crate::args::{BandsArgs, TablesArgs};
use crate::failure::Failure;
use crate::output::Output;

pub(super) fn tables(arguments: &TablesArgs, output: &Output) -> Result<(), Failure> {
    let bands = Bands::committed()
        .map_err(|error| Failure::failed(format!("the committed bands cannot be read: {error}")))?;
    let lines = lines(&bands, arguments.threads.count());
    if let Some(folder) = &arguments.plot {
        for path in plots::write(folder, &lines)? {
            output.note(format!("written to {}", path.display()));
        }
    }
    if let Some(path) = &arguments.markdown {
        let page = page::page(&lines, &bands);
        std::fs::write(path, page).map_err(|error| cannot_write(path, &error))?;
        output.note(format!("written to {}", path.display()));
    }
    let missed = lines.iter().filter(|line| !line.holds()).count();
    let value: Vec<_> = lines.iter().map(as_json).collect();
    output.data(&json!({ "figures": value, "missed": missed }), || {
        as_text(&lines)
    });
    match missed {
        0 => Ok(()),
        1 => Err(Failure::failed("one figure is not what it must be").told()),
        count => Err(Failure::failed(format!("{count} figures are not what they must be")).told()),
    }
}

/// A file that was asked for cannot be written.
pub(super) fn cannot_write(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::usage(format!("cannot write {}: {error}", path.display()))
}

fn as_json(line: &Line) -> Value {
    json!({
        "key": line.published.key,
        "table": line.published.table,
        "name": line.published.name,
        "unit": match line.published.unit {
            Unit::Seconds => "seconds",
            Unit::Count => "count",
            Unit::Characters => "characters",
            Unit::Bytes => "bytes",
        },
        "published": line.published.value,
        "parity": line.parity,
        "defaults": line.defaults,
        "band": line.band,
        "kind": match line.published.kind {
            Kind::Exact => "exact",
            Kind::AtMost => "at most",
            Kind::Random => "random",
        },
        "holds": line.holds(),
    })
}

fn as_text(lines: &[Line]) -> Vec<String> {
    let mut text = Vec::new();
    let mut table = "";
    for line in lines {
        if line.published.table != table {
            table = line.published.table;
            if !text.is_empty() {
                text.push(String::new());
            }
            text.push(format!(
                "{table:<66}{:>10}{:>10}   {:<15}{:>10}",
                "published", "parity", "band (99.9 %)", "defaults"
            ));
        }
        text.push(format!(
            "  {:<64}{:>10}{:>10}   {:<15}{:>10}{}",
            line.published.name,
            shown(line, line.published.value),
            shown(line, line.parity),
            band(line),
            shown(line, line.defaults),
            if line.holds() { "" } else { "   MISSED" },
        ));
    }
    text
}

/// Where our figure must lie, in words.
pub(super) fn band(line: &Line) -> String {
    match (line.published.kind, line.band) {
        (Kind::Exact, _) if line.published.value.is_some() => "exact".to_owned(),
        (Kind::AtMost, _) => "at most".to_owned(),
        (Kind::Exact, _) | (Kind::Random, None) => String::new(),
        (Kind::Random, Some((low, high))) => {
            let decimals = line.published.decimals as usize;
            format!("{low:.decimals$} – {high:.decimals$}")
        }
    }
}

/// A figure with its unit, or a dash for none.
pub(super) fn shown(line: &Line, figure: Option<f64>) -> String {
    let Some(figure) = figure else {
        return "–".to_owned();
    };
    let decimals = line.published.decimals as usize;
    match line.published.unit {
        Unit::Seconds => format!("{figure:.decimals$} s"),
        Unit::Count | Unit::Characters => format!("{figure:.decimals$}"),
        Unit::Bytes => format!("{figure:.decimals$} B"),
    }
}

pub(super) fn bands(arguments: &BandsArgs, output: &Output) -> Result<(), Failure> {
    let bands = reseed(SEED, arguments.seeds, arguments.threads.count(), |done| {
        if done % 50 == 0 {
            output.note(format!("{done} of {} reseedings", arguments.seeds));
        }
    });
    let missed = bands.misses();
    if let Some(first) = missed.first() {
        let band = first.band.map_or_else(
            || "there is no band".to_owned(),
            |(low, high)| format!("the band is {low} to {high}"),
        );
        let (key, published) = (first.key, first.published);
        let count = missed.len();
        return Err(Failure::failed(format!(
            "{count} published figures lie outside of their bands; the first is {key}: \
             published {published}, {band}. Nothing is written"
        )));
    }
    let text =
        serde_json::to_string_pretty(&bands).map_err(|error| Failure::failed(error.to_string()))?;
    match &arguments.out {
        None => output.data(&bands, || text.lines().map(str::to_owned).collect()),
        Some(path) => {
            std::fs::write(path, text + "\n").map_err(|error| cannot_write(path, &error))?;
            output.done(format!("written to {}", path.display()));
        }
    }
    Ok(())
}
