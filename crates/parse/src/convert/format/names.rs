//! Texts of any case: names of months, words for truth values.

/// Bytes at the front of `text` that spell a name, whose characters are folded ([`headrace_types::folded`]), in any case.
pub fn spelled(text: &[u8], folded: &str) -> Option<usize> {
    if let Some(same) = text.get(..folded.len())
        && same.is_ascii()
        && folded.is_ascii()
    {
        return same.eq_ignore_ascii_case(folded.as_bytes()).then_some(folded.len());
    }
    let valid = text.utf8_chunks().next()?.valid();
    let mut wanted = folded.chars();
    for (at, character) in valid.char_indices() {
        if wanted.as_str().is_empty() {
            return Some(at);
        }
        if !character.to_lowercase().all(|one| wanted.next() == Some(one)) {
            return None;
        }
    }
    wanted.as_str().is_empty().then_some(valid.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_any_case() {
        for (text, name, length) in [
            ("März 5", "märz", Some(5)),
            ("MÄRZ", "märz", Some(5)),
            ("Ma", "märz", None),
            ("may.", "may", Some(3)),
            ("", "may", None),
            ("İ", "i\u{307}", Some(2)),
        ] {
            assert_eq!(spelled(text.as_bytes(), name), length, "{text}");
        }
        assert_eq!(spelled(b"may\xFF", "may"), Some(3));
        assert_eq!(spelled(b"ma\xFF", "may"), None);
    }
}
