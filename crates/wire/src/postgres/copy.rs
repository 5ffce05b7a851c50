//! What stands around the rows: the stream's header and trailer, and the CopyData messages that carry it.

/// Signature, flags (none) and length of the header's extension (none).
pub const HEADER: &[u8; 19] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// A tuple of -1 columns ends the stream.
pub const TRAILER: &[u8; 2] = &(-1i16).to_be_bytes();

/// Type byte of the protocol's CopyData message.
pub const COPY_DATA: u8 = b'd';

/// Bytes in front of the content of a CopyData message: type and length.
pub const COPY_DATA_HEADER_BYTES: usize = 5;

/// What stands in front of `content_bytes` of the stream. A message may end anywhere in it, also inside a row. `None` when
/// the content is longer than the message's signed 32-bit length can say.
pub fn copy_data_header(content_bytes: usize) -> Option<[u8; COPY_DATA_HEADER_BYTES]> {
    // The length counts itself, but not the type byte.
    let length = i32::try_from(content_bytes.checked_add(4)?).ok()?.to_be_bytes();
    Some([COPY_DATA, length[0], length[1], length[2], length[3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_header_counts_itself_but_not_its_type() {
        assert_eq!(copy_data_header(0), Some([b'd', 0, 0, 0, 4]));
        assert_eq!(copy_data_header(0x10000), Some([b'd', 0, 1, 0, 4]));
        assert_eq!(copy_data_header(i32::MAX as usize - 3), None);
        assert_eq!(copy_data_header(usize::MAX), None);
    }
}
