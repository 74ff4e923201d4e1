//! What each row of a data set (a table of samples) says about the recording that the row is from.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Labels that distinguish samples, by key; `None` if there are none.
pub type Labels = Option<Arc<BTreeMap<Box<str>, Box<str>>>>;

/// Microseconds per day.
const DAY: i64 = 86_400_000_000;

/// What is known about a recording. Each row of a data set repeats it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Recording {
    /// The SHA-1 of the recording's uncompressed file, in hexadecimal digits.
    pub input: Option<Box<str>>,
    /// The recorded machine's host name.
    pub host: Option<Box<str>>,
    /// The machine's architecture.
    pub arch: Option<Box<str>>,
    /// The machine's kernel release.
    pub kernel: Option<Box<str>>,
    /// The recorded command line, its words separated by spaces.
    pub command: Option<Box<str>>,
    /// The time of the first sample, in microseconds since 1970.
    pub start: Option<i64>,
    /// The day under which a partitioned data set stores the recording, in days since 1970.
    pub day: Option<i32>,
    /// The share of frames that have a name, from 0 to 1: the bits of an `f64`, so that recordings can be compared and
    /// hashed.
    pub share_named: Option<u64>,
    /// Wall-clock time at time 0 of the recording's clock, in nanoseconds since 1970.
    pub epoch: Option<i64>,
    /// The length in nanoseconds of the intervals whose samples are summed to one row; `None` if each row is a sample.
    pub bucket: Option<i64>,
}

/// The labels for a control group: its path, and the pod and container if Kubernetes created it.
pub fn cgroup_labels(path: &str) -> Labels {
    let mut labels: BTreeMap<Box<str>, Box<str>> = BTreeMap::from([("cgroup".into(), path.into())]);
    if path.contains("kubepods") {
        let mut parts = path.split('/').map(|part| part.trim_end_matches(".slice").trim_end_matches(".scope"));
        if let Some(pod) = parts.find_map(pod_uid) {
            labels.insert("pod".into(), pod.into());
            // The container follows the pod in the path, for example `cri-containerd-ID`.
            if let Some(container) = parts.next().and_then(|part| part.rsplit('-').next())
                && is_uid(container)
            {
                labels.insert("container".into(), container.into());
            }
        }
    }
    Some(Arc::new(labels))
}

/// The UID of a pod from one component of a control group's path, such as `podUID` or `kubepods-burstable-podUID`;
/// `None` if there is none. systemd uses dashes as separators, so Kubernetes writes the UID with underscores.
fn pod_uid(part: &str) -> Option<String> {
    let (before, uid) = part.rsplit_once("pod")?;
    let uid = uid.replace('_', "-");
    let is_pod = (before.is_empty() || before.ends_with('-')) && is_uid(&uid);
    if is_pod { Some(uid) } else { None }
}

fn is_uid(text: &str) -> bool {
    text.len() >= 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// Converts nanoseconds to microseconds, rounded down. `None` if the result doesn't fit.
pub fn micros(nanos: i128) -> Option<i64> {
    i64::try_from(nanos.div_euclid(1000)).ok()
}

/// The day (days since 1970, UTC) of a time (microseconds since 1970). `None` if it is out of range.
pub fn day(micros: i64) -> Option<i32> {
    i32::try_from(micros.div_euclid(DAY)).ok()
}

/// Parses the name of a data set's directory, such as `2026-11-22`, to days since 1970. `None` if it isn't a date.
pub fn parse_day(text: &str) -> Option<i32> {
    let mut parts = text.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day_of_month) = (parts.next()??, parts.next()??, parts.next()??);
    if !(0..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day_of_month) {
        return None;
    }
    // Count years from March, so that a leap day is the last day of its year. An era is 400 years, or 146,097 days. The
    // first one begins on March 1 of the year 0, 719,468 days before 1970.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    // From March on, five months in a row have 153 days (31, 30, 31, 30, 31).
    let day_of_year = (153 * month + 2) / 5 + day_of_month - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let day = i32::try_from(era * 146_097 + day_of_era - 719_468).ok()?;
    // If the text isn't a valid date, the name of the day differs: a day that its month doesn't have has become one of
    // the next month.
    if day_name(day) == text { Some(day) } else { None }
}

/// The date of a day (days since 1970), such as `2026-11-22`.
pub fn day_name(day: i32) -> String {
    // As in `parse_day`, years begin in March, and an era is 400 years.
    // The formulas are those of `civil_from_days` (<https://howardhinnant.github.io/date_algorithms.html>).
    let since_first_era = i64::from(day) + 719_468;
    let (era, day_of_era) = (since_first_era.div_euclid(146_097), since_first_era.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day_of_month:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_known_by_their_control_groups() {
        let pod = "0f4c2d8e-9a41-4f0e-8d57-1b2c3d4e5f60";
        let container = "7d3a".repeat(16);
        let systemd = format!(
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{}.slice/cri-containerd-{container}.scope",
            pod.replace('-', "_")
        );
        for path in [systemd, format!("/kubepods/besteffort/pod{pod}/{container}")] {
            let labels = cgroup_labels(&path).unwrap();
            assert_eq!(labels["cgroup"], path.clone().into());
            assert_eq!((&*labels["pod"], &*labels["container"]), (pod, &*container), "{path}");
        }
        for path in ["/system.slice/nginx.service", "/kubepods/podcast"] {
            let labels = cgroup_labels(path).unwrap();
            assert_eq!(labels.keys().map(|key| &**key).collect::<Vec<_>>(), ["cgroup"]);
        }
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        let day_of = |seconds: i64| day_name(day(seconds * 1_000_000).unwrap());
        assert_eq!(day_of(0), "1970-01-01");
        assert_eq!(day_of(951_782_400), "2000-02-29");
        assert_eq!(day_of(1_795_305_599), "2026-11-21");
        assert_eq!(day_of(1_795_305_600), "2026-11-22");
        assert_eq!(day_of(-1), "1969-12-31");
        for day in (-100_000..100_000).step_by(37) {
            assert_eq!(parse_day(&day_name(day)), Some(day));
        }
        for wrong in ["", "2026-02-29", "2026-13-01", "2026-1-1", "x"] {
            assert_eq!(parse_day(wrong), None, "{wrong}");
        }
    }
}
