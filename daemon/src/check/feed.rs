//! `feed.jsonl`: every line parses and its number is one more than that before it. A line that asks everybody to look
//! at everything makes good what was lost before it, so damage counts only after the last of those.

use std::io::{self, BufRead};

use minder_proto::record::FeedLine;

use super::finding::{Finding, Sheet, unparsable};
use super::lines::{self, Next};

/// Reads a feed.
pub fn read(file: &str, mut reader: impl BufRead) -> io::Result<Vec<Finding>> {
    let mut sheet = Sheet::new(file);
    let mut buffer = Vec::new();
    let mut last: Option<u64> = None;
    for number in 1.. {
        match lines::next(&mut reader, &mut buffer)?.0 {
            Next::Line if buffer.is_empty() => continue,
            Next::Line => {}
            Next::Endless => {
                sheet.damage(format!("line {number} cannot be read: it is too long"));
                continue;
            }
            Next::End(0) => break,
            Next::End(rest) => {
                sheet.note(format!(
                    "{rest} bytes without a newline at the end; the next line begins a fresh one"
                ));
                break;
            }
        }
        match serde_json::from_slice::<FeedLine>(&buffer) {
            Ok(line) => {
                if line.all {
                    sheet = Sheet::new(file);
                } else if let Some(before) = last.filter(|before| before.checked_add(1) != Some(line.n)) {
                    sheet.damage(format!("line {number}: n is {}, after {before}", line.n));
                }
                last = Some(line.n);
            }
            Err(e) => sheet.damage(format!("line {number} {}", unparsable(&e, true))),
        }
    }
    Ok(sheet.finish())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn damage_counts_until_everybody_was_asked_to_look() {
        let id = "5f1c2d4a-90c3-4f0e-8a17-c2b6d1e4f700";
        let told = |text: &str| -> String {
            let found = read("feed.jsonl", text.replace("ID", id).as_bytes()).unwrap();
            found.into_iter().fold(String::new(), |text, f| text + &format!("{:?} {}\n", f.weight, f.what))
        };
        let good = "{\"n\":7,\"s\":\"ID\",\"q\":1}\n{\"n\":8,\"s\":\"ID\",\"q\":2}\n";
        assert_eq!(told(good), "");
        let bad = format!(
            "{good}garbage\n{{\"n\":10,\"s\":\"ID\",\"q\":3}}\n{{\"n\":10,\"s\":\"ID\",\"q\":3}}\n{{\"n\":"
        );
        expect![[r"
            Damage line 3 cannot be read: expected value
            Damage line 4: n is 10, after 8
            Damage line 5: n is 10, after 10
            Note 5 bytes without a newline at the end; the next line begins a fresh one
        "]]
        .assert_eq(&told(&bad));
        assert_eq!(told(&format!("{bad}\n{{\"n\":12,\"all\":true}}\n{{\"n\":13,\"all\":true}}\n")), "");
    }
}
