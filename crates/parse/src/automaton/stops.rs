//! Bytes at which skipping ends.

use super::{OTHER, Step};

/// Bytes to look for.
#[derive(Debug, Clone)]
pub(super) enum Stops {
    None,
    One(u8),
    Two(u8, u8),
    Three(u8, u8, u8),
    Set(Box<[bool; 256]>),
}

impl Stops {
    /// The bytes that lead away from a state, or with which something ends; none if others do too.
    pub fn of(state: u32, steps: &[Step], tokens: &[u8]) -> Option<Stops> {
        let stays = Step { state, ..Step::default() };
        if steps[OTHER] != stays {
            return None;
        }
        let bytes: Vec<u8> =
            std::iter::zip(tokens, &steps[1..]).filter(|(_, step)| **step != stays).map(|(&byte, _)| byte).collect();
        Some(match bytes[..] {
            [] => Stops::None,
            [one] => Stops::One(one),
            [one, two] => Stops::Two(one, two),
            [one, two, three] => Stops::Three(one, two, three),
            _ => Stops::Set(Box::new(std::array::from_fn(|byte| bytes.contains(&(byte as u8))))),
        })
    }

    pub fn find(&self, bytes: &[u8]) -> Option<usize> {
        match self {
            Stops::None => None,
            Stops::One(one) => memchr::memchr(*one, bytes),
            Stops::Two(one, two) => memchr::memchr2(*one, *two, bytes),
            Stops::Three(one, two, three) => memchr::memchr3(*one, *two, *three, bytes),
            Stops::Set(set) => bytes.iter().position(|&byte| set[usize::from(byte)]),
        }
    }
}
