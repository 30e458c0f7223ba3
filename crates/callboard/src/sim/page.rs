//! The tables as a Markdown page: `docs/reference/figures.md`.

use callboard_sim::tables::{Bands, Line};

use super::tables::{band, shown};

/// The page. It says the same on every machine.
pub(super) fn page(lines: &[Line], bands: &Bands) -> String {
    let mut page = format!(
        "# Published figures, and ours\n\n\
         The hub, the relay and the scheduler of this repository on a virtual clock, beside what was \
         published.\n*Parity* is the published behaviour; *defaults* is ours: the wake-up connection, and \
         an agent that uses\n`wait_seconds`. A band holds the figures of {} seeds; where it says *exact*, \
         every correct build gives the\npublished figure. The choices behind it are in [decision \
         0008](../decisions/0008-the-simulator.md).\n\n\
         This page is written by `callboard sim tables --markdown docs/reference/figures.md --plot \
         docs/reference/figures`;\nthe test command fails when it says something else.\n\n\
         ![How long a queued run waits for its desktop](figures/pickup.svg)\n\n\
         ![What polling costs, and how late it notices](figures/polling.svg)\n\n\
         ![Runs queued together](figures/burst.svg)\n",
        bands.seeds
    );
    let mut table = "";
    for line in lines {
        if line.published.table != table {
            table = line.published.table;
            page.push_str(&format!(
                "\n## {table}\n\n| | published | parity | band | defaults |\n|---|--:|--:|---|--:|\n"
            ));
        }
        page.push_str(&format!(
            "| {} | {} | {} | {} | {} |\n",
            line.published.name,
            shown(line, line.published.value),
            shown(line, line.parity),
            band(line),
            shown(line, line.defaults),
        ));
    }
    page
}
