//! The figures that a curve says best, as SVG.

use std::path::{Path, PathBuf};

use callboard_sim::tables::{Line, Mode, pickup_waits};
use plotters::prelude::*;

use super::tables::cannot_write;
use crate::failure::Failure;

/// Width and height of a plot, in CSS pixels.
const SIZE: (u32, u32) = (720, 400);
/// The published behaviour.
const PARITY: RGBColor = RGBColor(122, 128, 140);
/// Ours.
const DEFAULTS: RGBColor = RGBColor(30, 102, 220);
/// Points a second in the distribution of waits.
const POINTS_PER_SECOND: u32 = 2;
/// The longest wait of the axis: one turn of the relay, and a little room.
const WAIT_SECONDS_MAX: f64 = 20.5;

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Plot = fn(&Area<'_>, &[Line]) -> Drawn;
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// Writes all plots into `folder` and gives their paths.
pub(super) fn write(folder: &Path, lines: &[Line]) -> Result<Vec<PathBuf>, Failure> {
    std::fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
    let plots: [(&str, Plot); 3] = [
        ("pickup.svg", pickup),
        ("polling.svg", polling),
        ("burst.svg", burst),
    ];
    let mut written = Vec::new();
    for (name, draw) in plots {
        let path = folder.join(name);
        let area = SVGBackend::new(&path, SIZE).into_drawing_area();
        area.fill(&WHITE)
            .and_then(|()| draw(&area, lines))
            .and_then(|()| area.present())
            .map_err(|error| cannot_write(&path, &error))?;
        drop(area);
        written.push(path);
    }
    Ok(written)
}

/// Under the published behaviour or ours.
fn of(lines: &[Line], key: &str, mode: Mode) -> Option<f64> {
    let line = lines.iter().find(|line| line.published.key == key)?;
    match mode {
        Mode::Parity => line.parity,
        Mode::Defaults => line.defaults,
    }
}

/// How long queued runs wait for an idle desktop.
fn pickup(area: &Area<'_>, _: &[Line]) -> Drawn {
    let mut chart = ChartBuilder::on(area)
        .caption(
            "How long a queued run waits for its idle desktop",
            caption(),
        )
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..WAIT_SECONDS_MAX, 0.0..100.0)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_desc("seconds")
        .x_label_formatter(&|seconds| format!("{seconds:.0}"))
        .y_desc("% of the runs that wait no longer")
        .y_label_formatter(&|value| format!("{value:.0}"))
        .light_line_style(TRANSPARENT)
        .label_style(text())
        .draw()?;
    for (mode, colour, name) in [
        (Mode::Parity, PARITY, "parity: a turn every 20 s"),
        (Mode::Defaults, DEFAULTS, "defaults: the wake-up connection"),
    ] {
        let curve = cumulative(&pickup_waits(mode));
        chart
            .draw_series(LineSeries::new(curve, colour.stroke_width(2)))?
            .label(name)
            .legend(move |at| swatch(at, colour));
    }
    legend(&mut chart, SeriesLabelPosition::MiddleRight)
}

/// Share of `waits` that are at most so long, in percent, at every half second.
#[allow(clippy::cast_precision_loss, reason = "a few thousand waits")]
fn cumulative(waits: &[f64]) -> Vec<(f64, f64)> {
    let share = |point: u32| {
        let until = f64::from(point) / f64::from(POINTS_PER_SECOND);
        let within = waits.iter().filter(|wait| **wait <= until).count();
        (until, 100.0 * within as f64 / waits.len().max(1) as f64)
    };
    let points = (0..).map(share);
    points
        .take_while(|(until, _)| *until <= WAIT_SECONDS_MAX)
        .collect()
}

/// Calls a run against how late its end is noticed, for each way to poll.
fn polling(area: &Area<'_>, lines: &[Line]) -> Drawn {
    const WAYS: [(&str, &str); 6] = [
        ("2", "every 2 s"),
        ("5", "every 5 s"),
        ("20then10", "20 s, then every 10 s"),
        ("15", "every 15 s"),
        ("backoff", "2, 4, 8 … 30 s"),
        ("30", "every 30 s"),
    ];
    let point = |way: &str, mode| {
        let calls = of(lines, &format!("poll.{way}.calls"), mode)?;
        Some((calls, of(lines, &format!("poll.{way}.late"), mode)?))
    };
    let mut chart = ChartBuilder::on(area)
        .caption("What polling costs, and how late it notices", caption())
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(56)
        .build_cartesian_2d((2.0..64.0).log_scale(), -0.7..17.0)?;
    chart
        .configure_mesh()
        .x_desc("calls a run, mean")
        .y_desc("seconds late, mean")
        .x_label_formatter(&|calls| format!("{calls:.0}"))
        .y_label_formatter(&|value| format!("{value:.0}"))
        .light_line_style(TRANSPARENT)
        .label_style(text())
        .draw()?;
    let mut parity: Vec<_> = WAYS
        .iter()
        .filter_map(|(way, name)| Some((point(way, Mode::Parity)?, *name)))
        .collect();
    parity.sort_by(|left, right| left.0.0.total_cmp(&right.0.0));
    let fixed = parity.iter().filter(|(_, name)| name.starts_with("every"));
    let curve = fixed.map(|(at, _)| *at);
    chart.draw_series(LineSeries::new(curve, PARITY.stroke_width(1)))?;
    let ours = point("wait", Mode::Defaults);
    let ours = ours.map(|at| (at, "wait_seconds 40 (defaults)", DEFAULTS));
    let parity = parity.into_iter().map(|(at, name)| (at, name, PARITY));
    for ((calls, late), name, colour) in parity.chain(ours) {
        chart.draw_series([Circle::new((calls, late), 4, colour.filled())])?;
        // On a logarithmic axis a factor is a distance.
        let beside = (calls * 1.04, late + 0.9);
        chart.draw_series([Text::new(name, beside, text().color(&colour))])?;
    }
    Ok(())
}

/// First and last result of runs that are queued together.
fn burst(area: &Area<'_>, lines: &[Line]) -> Drawn {
    let mut chart = ChartBuilder::on(area)
        .caption(
            "Runs queued together on one desktop, of about 80 s each",
            caption(),
        )
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(56)
        .build_cartesian_2d(0.8..5.4, 0.0..850.0)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(5)
        .x_label_formatter(&|runs| format!("{runs:.0}"))
        .x_desc("runs at once")
        .y_desc("seconds until the result")
        .y_label_formatter(&|value| format!("{value:.0}"))
        .light_line_style(TRANSPARENT)
        .label_style(text())
        .draw()?;
    for (key, mode, colour, name) in [
        (
            "last_p95",
            Mode::Parity,
            PARITY.mix(0.5),
            "last, p95 (parity)",
        ),
        (
            "last",
            Mode::Parity,
            PARITY.mix(1.0),
            "last, median (parity)",
        ),
        (
            "first",
            Mode::Parity,
            PARITY.mix(0.8),
            "first, median (parity)",
        ),
        (
            "last",
            Mode::Defaults,
            DEFAULTS.mix(1.0),
            "last, median (defaults)",
        ),
        (
            "first",
            Mode::Defaults,
            DEFAULTS.mix(0.6),
            "first, median (defaults)",
        ),
    ] {
        let at = |runs: u8| {
            Some((
                f64::from(runs),
                of(lines, &format!("burst.{runs}.{key}"), mode)?,
            ))
        };
        let curve: Vec<_> = [1, 3, 5].into_iter().filter_map(at).collect();
        chart.draw_series(curve.iter().map(|at| Circle::new(*at, 3, colour.filled())))?;
        chart
            .draw_series(LineSeries::new(curve, colour.stroke_width(2)))?
            .label(name)
            .legend(move |at| swatch(at, colour));
    }
    legend(&mut chart, SeriesLabelPosition::UpperLeft)
}

fn caption() -> TextStyle<'static> {
    ("sans-serif", 17).into()
}

fn text() -> TextStyle<'static> {
    ("sans-serif", 12).into()
}

type Curve<'a, X, Y> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>;
type Seconds = plotters::coord::types::RangedCoordf64;

fn legend(chart: &mut Curve<'_, Seconds, Seconds>, place: SeriesLabelPosition) -> Drawn {
    chart
        .configure_series_labels()
        .position(place)
        .background_style(WHITE.mix(0.85))
        .label_font(text())
        .draw()
}

fn swatch<C: Color>(at: (i32, i32), colour: C) -> PathElement<(i32, i32)> {
    PathElement::new([at, (at.0 + 18, at.1)], colour.stroke_width(2))
}
