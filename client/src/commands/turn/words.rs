//! Spans, counts and sizes as people read them.

/// A window to the millisecond, in as many units as it needs: `45m`, `1h 30m`, `250ms`, `0s`.
pub fn exact(ms: u64) -> String {
    let units = [("d", ms / 86_400_000), ("h", ms / 3_600_000 % 24), ("m", ms / 60_000 % 60)];
    let rest = [("s", ms / 1_000 % 60), ("ms", ms % 1_000)];
    let parts = units.into_iter().chain(rest).filter(|(_, n)| *n > 0);
    let text = parts.map(|(unit, n)| format!("{n}{unit}")).collect::<Vec<_>>().join(" ");
    if text.is_empty() { "0s".to_owned() } else { text }
}

/// A measured time in at most two units: `340ms`, `3.4s`, `1m 2s`, `2h 5m`, `3d 4h`.
pub fn rough(ms: u64) -> String {
    let two = |big: u64, unit: &str, small: u64, under: &str| {
        if small == 0 { format!("{big}{unit}") } else { format!("{big}{unit} {small}{under}") }
    };
    match ms {
        0 => "0s".to_owned(),
        1..1_000 => format!("{ms}ms"),
        1_000..10_000 => format!("{}.{}s", ms / 1_000, ms % 1_000 / 100),
        10_000..60_000 => format!("{}s", ms / 1_000),
        60_000..3_600_000 => two(ms / 60_000, "m", ms / 1_000 % 60, "s"),
        3_600_000..86_400_000 => two(ms / 3_600_000, "h", ms / 60_000 % 60, "m"),
        _ => two(ms / 86_400_000, "d", ms / 3_600_000 % 24, "h"),
    }
}

/// A size: `8 MiB` where that is exact, else bytes.
pub fn size(bytes: u64) -> String {
    const MIB: u64 = 1024 * 1024;
    match bytes {
        0 => "0 bytes".to_owned(),
        n if n.is_multiple_of(MIB) => format!("{} MiB", n / MIB),
        n if n.is_multiple_of(1024) => format!("{} KiB", n / 1024),
        n => format!("{n} bytes"),
    }
}

/// A large count in three figures: `999`, `12.3k`, `1.24M`.
pub fn count(n: u64) -> String {
    let scaled = |unit: u64, name: &str| {
        let whole = n / unit;
        let digits = if whole < 10 { 2 } else { usize::from(whole < 100) };
        let tens = 10_u64.pow(u32::try_from(digits).expect("at most two"));
        let part = n % unit / (unit / tens);
        if digits == 0 { format!("{whole}{name}") } else { format!("{whole}.{part:0digits$}{name}") }
    };
    match n {
        0..1_000 => n.to_string(),
        1_000..1_000_000 => scaled(1_000, "k"),
        1_000_000..1_000_000_000 => scaled(1_000_000, "M"),
        _ => scaled(1_000_000_000, "G"),
    }
}

/// `1 turn`, `2 turns`.
pub fn plural(n: u64, one: &str, more: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {more}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_counts_and_sizes() {
        let texts = [0, 1, 250, 1_000, 90_000, 2_700_000, 5_400_000, 86_400_000, 2_147_483_647].map(exact);
        assert_eq!(
            texts,
            ["0s", "1ms", "250ms", "1s", "1m 30s", "45m", "1h 30m", "1d", "24d 20h 31m 23s 647ms"]
        );
        let texts = [0, 340, 3_449, 59_999, 62_000, 120_000, 7_500_000, 273_600_000].map(rough);
        assert_eq!(texts, ["0s", "340ms", "3.4s", "59s", "1m 2s", "2m", "2h 5m", "3d 4h"]);
        assert_eq!([0, 1_023, 2_048, 8_388_608].map(size), ["0 bytes", "1023 bytes", "2 KiB", "8 MiB"]);
        let texts = [0, 999, 1_000, 12_345, 999_999, 1_240_000, 3_000_000_000].map(count);
        assert_eq!(texts, ["0", "999", "1.00k", "12.3k", "999k", "1.24M", "3.00G"]);
    }
}
