//! The least and the greatest of values, with their texts.

use super::class::trimmed;

/// The first bytes of a text.
pub type Kept = Box<[u8]>;

/// By a key that orders values as what they are, not as texts. Of several texts of one value the least is kept, so that it does
/// not matter which comes first.
#[derive(Debug, Clone)]
pub struct Extremes<K> {
    range: Option<((K, Kept), (K, Kept))>,
}

impl<K> Default for Extremes<K> {
    fn default() -> Self {
        Extremes { range: None }
    }
}

impl<K: Ord + Copy> Extremes<K> {
    /// Takes a value; blanks around its text are not kept.
    pub fn widen(&mut self, key: K, text: &[u8]) {
        self.widen_by(key, trimmed(text));
    }

    /// Takes what another one has.
    pub fn merge(&mut self, other: &Extremes<K>) {
        if let Some((least, greatest)) = &other.range {
            self.widen_by(least.0, &least.1);
            self.widen_by(greatest.0, &greatest.1);
        }
    }

    /// The least and the greatest text.
    pub fn texts(&self) -> Option<(Kept, Kept)> {
        self.range.as_ref().map(|((_, least), (_, greatest))| (least.clone(), greatest.clone()))
    }

    fn widen_by(&mut self, key: K, text: &[u8]) {
        let kept = || (key, Kept::from(text));
        match &mut self.range {
            None => self.range = Some((kept(), kept())),
            Some((least, greatest)) => {
                if (key, text) < (least.0, &*least.1) {
                    *least = kept();
                }
                if key > greatest.0 || (key == greatest.0 && *text < *greatest.1) {
                    *greatest = kept();
                }
            }
        }
    }
}
