//! Runs experiments: what is on record is not done again, what is not is done on all cores, and what is
//! done goes on record at once.

use crate::journal::Journal;
use crate::sets::fingerprint;
use broadlearn::{Error, Observer, Progress, Result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// What a run has measured, by name: single figures, or one for every step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Values(BTreeMap<String, Vec<Option<f64>>>);

impl Values {
    pub(crate) fn set(&mut self, name: &str, value: Option<f64>) {
        self.set_all(name, [value]);
    }

    /// Figures of steps; such as are not finite count as missing.
    pub(crate) fn set_all(&mut self, name: &str, values: impl IntoIterator<Item = Option<f64>>) {
        let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
        self.0.insert(name.to_owned(), values.into_iter().map(finite).collect());
    }

    pub(crate) fn get(&self, name: &str) -> &[Option<f64>] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &[Option<f64>])> {
        self.0.iter().map(|(name, values)| (name.as_str(), values.as_slice()))
    }
}

/// Whether the user has asked to stop.
#[derive(Default)]
pub(crate) struct Stop(AtomicBool);

impl Stop {
    /// An observer that passes the wish on.
    pub(crate) fn observer(&self) -> impl FnMut(Progress) -> ControlFlow<()> + '_ {
        |_| if self.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// An error if so.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_set() { Err(Error::interrupted()) } else { Ok(()) }
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Names and values that tell a run from the others of its experiment.
pub(crate) type Labels = Vec<(&'static str, String)>;

type Work = Box<dyn Fn(&Stop) -> Result<Values> + Send + Sync>;

/// One run: some settings on some rows, with one seed.
pub(crate) struct Run {
    pub(crate) labels: Labels,
    /// Everything on which its figures depend.
    key: String,
    /// About how many seconds it takes on one core.
    cost: f64,
    /// Whether it wants the machine to itself.
    alone: bool,
    work: Work,
}

impl Run {
    /// `settings` is whatever else the figures depend on but the labels.
    pub(crate) fn new(
        labels: Labels,
        settings: &str,
        cost: f64,
        work: impl Fn(&Stop) -> Result<Values> + Send + Sync + 'static,
    ) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        let all = format!("{version} {labels:?} {settings}");
        let key = format!("{:016x}", fingerprint(all.as_bytes()));
        Self { labels, key, cost, alone: false, work: Box::new(work) }
    }

    /// A run that uses all cores by itself.
    pub(crate) fn alone(self) -> Self {
        Self { alone: true, ..self }
    }

    pub(crate) fn cost(&self) -> f64 {
        self.cost
    }

    fn name(&self) -> String {
        let names: Vec<&str> = self.labels.iter().map(|(_, value)| value.as_str()).collect();
        names.join(" / ")
    }
}

/// A run and what came of it.
pub(crate) struct Done {
    pub(crate) labels: Labels,
    pub(crate) values: Values,
}

/// Does the runs that are not on record; all of them, in their order.
pub(crate) fn run_all(
    experiment: &'static str,
    runs: Vec<Run>,
    journal: &mut Journal,
    observer: &mut Observer<'_>,
) -> Result<Vec<Done>> {
    let total: f64 = runs.iter().map(|run| run.cost).sum();
    let mut found: Vec<Option<Values>> =
        runs.iter().map(|run| journal.find(experiment, &run.key).cloned()).collect();
    let known = |(run, found): (&Run, &Option<Values>)| found.as_ref().map_or(0.0, |_| run.cost);
    let mut done: f64 = runs.iter().zip(&found).map(known).sum();
    let places: Vec<usize> = (0..runs.len()).filter(|place| found[*place].is_none()).collect();
    let stop = Stop::default();
    let mut failure = None;
    let mut tell = |done: f64| {
        let share = |cost: f64| (1000.0 * cost / total.max(1e-9)).round() as u64;
        let (done, total) = (share(done).min(1000), Some(1000));
        observer(Progress { stage: experiment, done, total, member: None })
    };
    let _ = tell(done);
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        let (runs, stop, places) = (&runs, &stop, &places);
        scope.spawn(move || work_off(runs, places, stop, &sender));
        loop {
            let message = receiver.recv_timeout(Duration::from_millis(100));
            match message {
                Ok((place, Ok(values))) => {
                    let run: &Run = &runs[place];
                    done += run.cost;
                    match journal.add(experiment, &run.key, &run.name(), &values) {
                        Ok(()) => found[place] = Some(values),
                        Err(error) => {
                            stop.set();
                            failure = failure.take().or(Some(error));
                        }
                    }
                }
                Ok((place, Err(error))) => {
                    stop.set();
                    let error = error.within(&format!("{experiment}, {}", runs[place].name()));
                    failure = failure.take().or(Some(error));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if tell(done).is_break() && !stop.is_set() {
                stop.set();
                failure = failure.take().or_else(|| Some(Error::interrupted()));
            }
        }
    });
    if let Some(error) = failure {
        return Err(error);
    }
    let complete = runs.into_iter().zip(found).map(|(run, values)| {
        let values = values.ok_or_else(Error::interrupted)?;
        Ok(Done { labels: run.labels, values })
    });
    complete.collect()
}

/// Small runs side by side, then large ones one after another.
fn work_off(runs: &[Run], places: &[usize], stop: &Stop, sender: &Sender<(usize, Result<Values>)>) {
    let work = |place: usize| {
        if !stop.is_set() {
            // The receiver goes only after the senders.
            let _ = sender.send((place, (runs[place].work)(stop)));
        }
    };
    let (large, small): (Vec<usize>, Vec<usize>) =
        places.iter().copied().partition(|place| runs[*place].alone);
    small.into_par_iter().with_max_len(1).for_each(work);
    large.into_iter().for_each(work);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use broadlearn::{Category, unobserved};
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    fn runs(count: usize, counter: &Arc<AtomicUsize>) -> Vec<Run> {
        let run = |i: usize| {
            let counter = counter.clone();
            Run::new(vec![("seed", i.to_string())], "square", 1.0, move |_| {
                counter.fetch_add(1, Ordering::SeqCst);
                let mut values = Values::default();
                values.set_all("test", [Some((i * i) as f64), Some(f64::NAN)]);
                Ok(values)
            })
        };
        (0..count).map(run).collect()
    }

    #[test]
    fn runs_come_in_order_and_are_not_done_twice() {
        let folder = tempfile::tempdir().unwrap();
        let counter = Arc::new(AtomicUsize::new(0));
        for (count, in_all) in [(5, 5), (9, 9), (9, 9)] {
            let mut journal = Journal::open(folder.path()).unwrap();
            let done =
                run_all("test", runs(count, &counter), &mut journal, &mut unobserved).unwrap();
            let squares: Vec<_> =
                done.iter().map(|done| done.values.get("test")[0].unwrap()).collect();
            assert_eq!(squares, (0..count).map(|i| (i * i) as f64).collect::<Vec<_>>());
            assert_eq!(done[0].values.get("test")[1], None);
            assert_eq!(counter.load(Ordering::SeqCst), in_all);
        }
    }

    #[test]
    fn an_interruption_ends_the_work_and_keeps_what_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let counter = Arc::new(AtomicUsize::new(0));
        let mut journal = Journal::open(folder.path()).unwrap();
        let slow = |i: usize| {
            Run::new(vec![("seed", i.to_string())], "slow", 1.0, |_| {
                std::thread::sleep(Duration::from_millis(20));
                Ok(Values::default())
            })
        };
        let mut halfway = |progress: Progress| {
            if progress.done > 100 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let result = run_all("test", (0..100).map(slow).collect(), &mut journal, &mut halfway);
        assert_eq!(result.err().unwrap().category(), Category::Interrupted);
        drop(journal);
        let text = std::fs::read_to_string(folder.path().join("journal.jsonl")).unwrap();
        assert!((5..60).contains(&text.lines().count()), "{}", text.lines().count());
        assert_eq!(counter.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_failure_names_its_run() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path()).unwrap();
        let run = Run::new(vec![("set", "quake".into())], "", 1.0, |_| Err(Error::data("nothing")));
        let error = run_all("test", vec![run], &mut journal, &mut unobserved).err().unwrap();
        assert_eq!(error.to_string(), "test, quake: found nothing");
    }
}
