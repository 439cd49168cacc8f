//! Labels of points: which of them a model knows already, and how they go on.

use broadlearn::Forecaster;
use broadlearn::data::TimeSeries;

/// How many of the first points the model knows, as far as labels tell.
pub(super) fn known_points(forecaster: &Forecaster, series: &TimeSeries) -> usize {
    let last = forecaster.last_labels().and_then(|(_, last)| last.last());
    match (last, &series.labels) {
        (Some(last), Some((_, labels))) if !last.is_empty() => {
            labels.iter().rposition(|label| label == last).map_or(0, |place| place + 1)
        }
        _ => 0,
    }
}

/// The labels of the points to come, as far as they can be known.
pub(super) fn labels_ahead(
    forecaster: &Forecaster,
    future: Option<&TimeSeries>,
    steps: usize,
) -> Option<(String, Vec<String>)> {
    let (name, last) = forecaster.last_labels()?;
    let known = future.and_then(|future| future.labels.as_ref());
    if let Some((_, labels)) = known.filter(|(_, labels)| labels.len() >= steps) {
        return Some((name.to_owned(), labels[..steps].to_vec()));
    }
    let [before, last] = last else { return None };
    let labels: Option<Vec<String>> =
        (1..=steps as i64).map(|step| label_after(before, last, step)).collect();
    Some((name.to_owned(), labels?))
}

/// The label so many steps after two that follow each other: whole numbers, months, days.
fn label_after(before: &str, last: &str, step: i64) -> Option<String> {
    if let (Ok(before), Ok(last)) = (before.parse::<i64>(), last.parse::<i64>()) {
        let ahead = last.checked_sub(before)?.checked_mul(step)?;
        return last.checked_add(ahead).map(|label| label.to_string());
    }
    let ((y0, m0, d0), (y1, m1, d1)) = (date(before)?, date(last)?);
    let months = (y1 - y0) * 12 + m1 - m0;
    match (d0, d1) {
        (None, None) => {
            let month = y1 * 12 + m1 - 1 + step * months;
            Some(format!("{:04}-{:02}", month.div_euclid(12), month.rem_euclid(12) + 1))
        }
        // The same day of later months, which every month has.
        (Some(a), Some(b)) if a == b && a <= 28 && months > 0 => {
            let month = y1 * 12 + m1 - 1 + step * months;
            Some(format!("{:04}-{:02}-{b:02}", month.div_euclid(12), month.rem_euclid(12) + 1))
        }
        (Some(a), Some(b)) => {
            let (before, last) = (days(y0, m0, a), days(y1, m1, b));
            let (y, m, d) = civil(last + step * (last - before));
            Some(format!("{y:04}-{m:02}-{d:02}"))
        }
        _ => None,
    }
}

/// Year, month and day of 2024-05 or 2024-05-17.
pub(super) fn date(text: &str) -> Option<(i64, i64, Option<i64>)> {
    let parts: Vec<&str> = text.split('-').collect();
    let whole = |text: &str, digits: usize| {
        let sound = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
        sound.then(|| text.parse::<i64>().ok()).flatten()
    };
    let (year, month, day) = match parts.as_slice() {
        [year, month] => (whole(year, 4)?, whole(month, 2)?, None),
        [year, month, day] => (whole(year, 4)?, whole(month, 2)?, Some(whole(day, 2)?)),
        _ => return None,
    };
    let sound = (1..=12).contains(&month) && day.is_none_or(|day| (1..=31).contains(&day));
    sound.then_some((year, month, day))
}

/// Days since 1970 of a date of the Gregorian calendar (Hinnant, "chrono-compatible low-level date
/// algorithms").
pub(super) fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The inverse of [`days`].
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_go_on_as_they_came() {
        let after = |before: &str, last: &str, step| label_after(before, last, step);
        assert_eq!(after("2023", "2024", 2).as_deref(), Some("2026"));
        assert_eq!(after("2023-11", "2023-12", 2).as_deref(), Some("2024-02"));
        assert_eq!(after("2024-02-27", "2024-02-28", 2).as_deref(), Some("2024-03-01"));
        assert_eq!(after("2023-02-27", "2023-02-28", 2).as_deref(), Some("2023-03-02"));
        assert_eq!(after("2024-01-15", "2024-02-15", 3).as_deref(), Some("2024-05-15"));
        assert_eq!(after("2024-01-01", "2024-01-08", 1).as_deref(), Some("2024-01-15"));
        assert_eq!(after("a", "b", 1), None);
        assert_eq!(days(1970, 1, 1), 0);
        assert!((-200_000..200_000).step_by(37).all(|day| {
            let (y, m, d) = civil(day);
            days(y, m, d) == day
        }));
    }
}
