//! How much memory there is.

/// What is taken where the system does not tell.
const USUAL: u64 = 2 << 30;

/// Half of the memory that is free: of the machine, or of the container if that has less.
pub fn share_of_free() -> u64 {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| available(&text));
    let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    // Version 2 of control groups; without a limit the first file holds a word.
    let limit = number("/sys/fs/cgroup/memory.max");
    let used = number("/sys/fs/cgroup/memory.current").unwrap_or(0);
    let container = limit.map(|limit| limit.saturating_sub(used));
    machine.into_iter().chain(container).min().map_or(USUAL, |free| free / 2)
}

fn available(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_understood() {
        let text = "MemTotal:       24555268 kB\nMemFree:         1 kB\nMemAvailable:   100 kB\n";
        assert_eq!(available(text), Some(102_400));
        assert_eq!(available("nothing"), None);
        assert!(share_of_free() > 0);
    }
}
