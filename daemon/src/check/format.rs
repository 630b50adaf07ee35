//! `format`: whether this build can read the store at all.

use minder_proto::STORE_FORMAT;

use super::finding::Sheet;

/// What the text says.
#[derive(Debug, PartialEq, Eq)]
pub enum Format {
    /// A store that this build reads, or one whose text is damaged and noted as such.
    Known,
    /// A newer build wrote it.
    Newer(String),
}

/// Judges the text of the file, where there is one.
pub fn read(bytes: Option<&[u8]>, sheet: &mut Sheet) -> Format {
    let Some(bytes) = bytes else {
        sheet.damage("not there");
        return Format::Known;
    };
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_end();
    let number = |text: &str| text.strip_prefix("minder-store ").and_then(|n| n.parse::<u64>().ok());
    if text != STORE_FORMAT {
        if number(text) > number(STORE_FORMAT) {
            return Format::Newer(text.to_owned());
        }
        sheet.damage(format!("it says {text:?}, not {STORE_FORMAT:?}"));
    }
    Format::Known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_higher_number_is_newer() {
        let read = |text: Option<&str>| {
            let mut sheet = Sheet::new("format");
            let format = read(text.map(str::as_bytes), &mut sheet);
            (format, sheet.finish().pop().map(|f| f.what))
        };
        assert_eq!(read(Some("minder-store 1\n")), (Format::Known, None));
        assert_eq!(read(Some("minder-store 2\n")), (Format::Newer("minder-store 2".into()), None));
        assert_eq!(read(Some("minder-store 10")).0, Format::Newer("minder-store 10".into()));
        assert_eq!(read(None).1.as_deref(), Some("not there"));
        for text in ["", "minder-store 0", "minder-store", "minder-store 2x", "other 2"] {
            let (format, what) = read(Some(text));
            assert_eq!(format, Format::Known);
            assert_eq!(what.unwrap(), format!("it says {text:?}, not \"minder-store 1\""));
        }
    }
}
