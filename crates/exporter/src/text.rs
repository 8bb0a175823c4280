//! Names that others gave, as outputs may show them: of bounded length.

/// How many characters of a name are shown at most.
const LONGEST: usize = 200;

/// A name, cut with a mark if it is too long.
pub(crate) fn bounded(name: &str) -> String {
    match name.char_indices().nth(LONGEST) {
        None => name.to_owned(),
        Some((end, _)) => format!("{}…", &name[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_between_characters_and_marked() {
        assert_eq!(bounded("u42"), "u42");
        let exact = "é".repeat(LONGEST);
        assert_eq!(bounded(&exact), exact);
        let cut = bounded(&"é".repeat(10_000));
        assert_eq!(cut.chars().count(), LONGEST + 1);
        assert!(cut.ends_with('…'));
    }
}
