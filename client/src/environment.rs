//! What a call brings of this process's environment, where the daemon starts something for it.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// The variables whose names and values are text. The daemon takes of them what a child may have.
pub fn own() -> BTreeMap<String, String> {
    text_of(std::env::vars_os())
}

fn text_of(vars: impl Iterator<Item = (OsString, OsString)>) -> BTreeMap<String, String> {
    vars.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn what_is_no_text_is_not_said() {
        let vars = [("A".into(), "1".into()), ("B".into(), OsString::from_vec(vec![0xff]))];
        assert_eq!(text_of(vars.into_iter()), BTreeMap::from([("A".to_owned(), "1".to_owned())]));
    }
}
