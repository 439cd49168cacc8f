//! Where a default fit spends its time, stage by stage.
//!
//! ```sh
//! RAYON_NUM_THREADS=1 cargo run --release --example stages -- data/airfoil.csv [regression]
//! ```

use broadlearn::data::{ReadOptions, Roles, TableReader, Task, TrainingData};
use broadlearn::model::Training;
use broadlearn::{Result, Settings, unobserved};
use std::ops::ControlFlow;
use std::time::Instant;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().expect("FILE.csv");
    let task = arguments.next().map(|_| Task::Regression);
    let mut reader = TableReader::open(path.as_ref(), &ReadOptions::default())?;
    let roles = Roles { task, ..Roles::target("last") };
    let data = TrainingData::read(&mut reader, &roles, &mut unobserved)?;
    let schema = data.schema(&(0..data.len()).collect::<Vec<_>>())?;
    let samples = data.into_samples(&schema)?;
    let training =
        Training { x: samples.x.as_ref(), targets: &samples.targets, weights: None, schema };
    let mut begun: Vec<(&'static str, u64, Instant)> = Vec::new();
    let mut note = |progress: broadlearn::Progress| {
        begun.push((progress.stage, progress.done, Instant::now()));
        ControlFlow::Continue(())
    };
    let model = Settings::new().fit(training, &mut note)?;
    begun.push(("end", 0, Instant::now()));
    for pair in begun.windows(2) {
        let seconds = (pair[1].2 - pair[0].2).as_secs_f64();
        println!("{seconds:>8.3} s  {} {}", pair[0].0, pair[0].1);
    }
    println!("{} nodes", model.map().width());
    Ok(())
}
