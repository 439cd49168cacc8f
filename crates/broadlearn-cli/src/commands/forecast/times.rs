//! Labels of points as times: whether they are in order, and at equal distances.

use super::labels::{date, days};
use broadlearn::Error;
use std::collections::HashMap;

/// What is odd about labels that are times, in words; nothing of labels that are not.
///
/// # Errors
/// If a time is not after the one before.
pub(super) fn check(labels: &[String], column: &str) -> Result<Option<String>, Error> {
    let Some(places) = places(labels) else { return Ok(None) };
    let steps: Vec<i64> = places.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if let Some(back) = steps.iter().position(|&step| step <= 0) {
        return Err(Error::data(format!("`{}` after `{}`", labels[back + 1], labels[back]))
            .at(format!("column `{column}`"))
            .expected("each time after the one before")
            .advice("sort the table by this column, with one row for each time"));
    }
    let mut counts: HashMap<i64, usize> = HashMap::new();
    steps.iter().for_each(|&step| *counts.entry(step).or_default() += 1);
    let usual = counts.into_iter().max_by_key(|&(step, count)| (count, -step));
    let Some((usual, _)) = usual else { return Ok(None) };
    let odd = || steps.iter().enumerate().filter(|(_, step)| **step != usual);
    Ok(odd().next().map(|(first, _)| {
        format!(
            "column `{column}`: {} of {} steps in time are not as long as most, the first after `{}`; lags and seasons \
             count rows. If points are missing, give each a row with an empty value",
            odd().count(),
            steps.len(),
            labels[first]
        )
    }))
}

/// Labels as numbers: whole numbers, months, days, seconds.
fn places(labels: &[String]) -> Option<Vec<i64>> {
    let all = |place: &dyn Fn(&str) -> Option<i64>| -> Option<Vec<i64>> {
        labels.iter().map(|label| place(label)).collect()
    };
    let month = |label: &str| date(label).map(|(y, m, _)| 12 * y + m);
    // The same day of every month, which every month has.
    let day = |label: &str| date(label).and_then(|(_, _, day)| day);
    let monthly = |days: &Vec<i64>| days.iter().all(|day| *day == days[0] && *day <= 28);
    all(&|label| label.parse().ok())
        .or_else(|| all(&|label| date(label).filter(|(_, _, day)| day.is_none()).and(month(label))))
        .or_else(|| all(&day).filter(monthly).and_then(|_| all(&month)))
        .or_else(|| all(&seconds))
}

/// Seconds since 1970 of 2024-05-17, 2024-05-17 10:30 or 2024-05-17T10:30:15.
fn seconds(text: &str) -> Option<i64> {
    let (day, time) = text.split_once([' ', 'T']).unwrap_or((text, "00:00"));
    let (y, m, d) = date(day)?;
    let parts: Option<Vec<i64>> = time
        .split(':')
        .map(|part| part.parse().ok().filter(|_| part.len() == 2).filter(|n| (0..60).contains(n)))
        .collect();
    let in_day = match parts?.as_slice() {
        [hours, minutes] => 60 * (60 * hours + minutes),
        [hours, minutes, seconds] => 60 * (60 * hours + minutes) + seconds,
        _ => return None,
    };
    Some(86_400 * days(y, m, d?) + in_day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(labels: &[&str]) -> Result<Option<String>, Error> {
        check(&labels.iter().map(|&label| label.to_owned()).collect::<Vec<_>>(), "t")
    }

    #[test]
    fn times_in_order_are_nothing_to_speak_of() {
        for labels in [
            &["1", "2", "3"][..],
            &["2023-11", "2023-12", "2024-01"],
            &["2024-01-15", "2024-02-15", "2024-03-15"],
            &["2024-02-28", "2024-02-29", "2024-03-01"],
            &["2024-02-29 22:30", "2024-02-29 23:30", "2024-03-01 00:30"],
            &["2024-01-01T00:00:30", "2024-01-01T00:01:00", "2024-01-01T00:01:30"],
            // No times that are known.
            &["b", "a"],
            &["Q2", "Q1"],
            &[],
            &["2024-01-01"],
        ] {
            assert!(matches!(said(labels), Ok(None)), "{labels:?}");
        }
    }

    #[test]
    fn times_that_go_back_are_an_error_and_gaps_are_told() {
        for labels in [["2024-01-02", "2024-01-01"], ["2024-01-02", "2024-01-02"], ["5", "4"]] {
            let error = said(&labels).expect_err("not in order").to_string();
            assert!(error.contains("each time after the one before"), "{error}");
        }
        let gap = said(&["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-07"]);
        let gap = gap.expect("in order").expect("a gap");
        assert!(gap.contains("1 of 3 steps") && gap.contains("after `2024-01-03`"), "{gap}");
    }
}
