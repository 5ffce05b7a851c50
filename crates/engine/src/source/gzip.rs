//! gzip (RFC 1952): members one behind the other, each with a checksum and a length; zeros may stand behind the last one.

use crc32fast::Hasher;
use flate2::{Decompress, FlushDecompress, Status};

use super::decoder::{Damage, Decoder, Step};

const MAGIC: [u8; 2] = [0x1F, 0x8B];
const DEFLATE: u8 = 8;
/// Bytes of a header that are always there: magic, method, flags, time, level, system.
const FIXED_HEADER: u16 = 10;
const FLAG_HEADER_CHECKSUM: u8 = 1 << 1;
const FLAG_EXTRA: u8 = 1 << 2;
const FLAG_NAME: u8 = 1 << 3;
const FLAG_COMMENT: u8 = 1 << 4;
const UNKNOWN_FLAGS: u8 = 0b1110_0000;

/// Where in a file the decoder stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// In front of a member, or of the end.
    Between,
    /// In the fixed part of a header, so many bytes behind its start.
    Fixed(u16),
    /// In the length of the extra field: its bytes so far, how many.
    ExtraLength(u16, u16),
    /// In the extra field, so many bytes before its end.
    Extra(u16),
    Name,
    Comment,
    /// In the checksum of the header: its bytes so far, how many.
    HeaderChecksum(u16, u16),
    Body,
    /// In checksum and length: so many bytes behind the start.
    Trailer(usize),
    /// Behind zeros that follow the last member.
    Padding,
}

/// Decodes gzip.
pub struct Gzip {
    place: Place,
    flags: u8,
    header: Hasher,
    inflate: Decompress,
    text: Hasher,
    /// Bytes of text of the member.
    length: u64,
    trailer: [u8; 8],
    /// Members that have ended.
    members: u64,
}

impl Gzip {
    pub fn new() -> Self {
        Gzip {
            place: Place::Between,
            flags: 0,
            header: Hasher::new(),
            inflate: Decompress::new(false),
            text: Hasher::new(),
            length: 0,
            trailer: [0; 8],
            members: 0,
        }
    }

    /// Takes one byte that is not of the body.
    fn take(&mut self, byte: u8) -> Result<(), Damage> {
        if !matches!(self.place, Place::Between | Place::HeaderChecksum(..) | Place::Trailer(_) | Place::Padding) {
            self.header.update(&[byte]);
        }
        self.place = match self.place {
            Place::Between if byte == MAGIC[0] => {
                self.header = Hasher::new();
                self.header.update(&[byte]);
                Place::Fixed(1)
            }
            Place::Between | Place::Padding if byte == 0 && self.members > 0 => Place::Padding,
            Place::Between | Place::Padding => return Err(self.garbage()),
            Place::Fixed(at) => {
                match at {
                    1 if byte != MAGIC[1] => return Err(self.garbage()),
                    2 if byte != DEFLATE => return Err(Damage::new(format!("compression method {byte}"))),
                    3 if byte & UNKNOWN_FLAGS != 0 => return Err(Damage::new("flags that mean nothing")),
                    3 => self.flags = byte,
                    _ => {}
                }
                if at + 1 < FIXED_HEADER { Place::Fixed(at + 1) } else { self.behind_fixed() }
            }
            Place::ExtraLength(length, 0) => Place::ExtraLength(length | u16::from(byte), 1),
            Place::ExtraLength(low, _) => match low | u16::from(byte) << 8 {
                0 => self.behind_extra(),
                length => Place::Extra(length),
            },
            Place::Extra(1) => self.behind_extra(),
            Place::Extra(left) => Place::Extra(left - 1),
            Place::Name if byte == 0 => self.behind_name(),
            Place::Comment if byte == 0 => self.behind_comment(),
            Place::HeaderChecksum(low, 0) => Place::HeaderChecksum(low | u16::from(byte), 1),
            Place::HeaderChecksum(low, _) => {
                if low | u16::from(byte) << 8 != self.header.clone().finalize() as u16 {
                    return Err(Damage::new("a header with a wrong checksum"));
                }
                self.body()
            }
            Place::Trailer(at) => {
                self.trailer[at] = byte;
                if at + 1 < self.trailer.len() { Place::Trailer(at + 1) } else { self.end_member()? }
            }
            Place::Name | Place::Comment | Place::Body => self.place,
        };
        Ok(())
    }

    fn behind_fixed(&mut self) -> Place {
        if self.flags & FLAG_EXTRA != 0 { Place::ExtraLength(0, 0) } else { self.behind_extra() }
    }

    fn behind_extra(&mut self) -> Place {
        if self.flags & FLAG_NAME != 0 { Place::Name } else { self.behind_name() }
    }

    fn behind_name(&mut self) -> Place {
        if self.flags & FLAG_COMMENT != 0 { Place::Comment } else { self.behind_comment() }
    }

    fn behind_comment(&mut self) -> Place {
        if self.flags & FLAG_HEADER_CHECKSUM != 0 { Place::HeaderChecksum(0, 0) } else { self.body() }
    }

    fn body(&mut self) -> Place {
        self.inflate.reset(false);
        self.text = Hasher::new();
        self.length = 0;
        Place::Body
    }

    fn inflate(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Damage> {
        let (taken, made) = (self.inflate.total_in(), self.inflate.total_out());
        let status = self.inflate.decompress(input, output, FlushDecompress::None);
        let consumed = (self.inflate.total_in() - taken) as usize;
        let produced = (self.inflate.total_out() - made) as usize;
        let status = status.map_err(|_| Damage::new("bytes that are no deflated text"))?;
        self.text.update(&output[..produced]);
        self.length += produced as u64;
        match status {
            Status::StreamEnd => self.place = Place::Trailer(0),
            _ if consumed == 0 && produced == 0 => return Err(Damage::new("deflated text that leads nowhere")),
            _ => {}
        }
        Ok(Step { consumed, produced })
    }

    fn end_member(&mut self) -> Result<Place, Damage> {
        let [a, b, c, d, e, f, g, h] = self.trailer;
        let (checksum, length) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
        let found = self.text.clone().finalize();
        if checksum != found {
            return Err(Damage::new(format!("text with checksum {found:08x}")).expected(format!("{checksum:08x}")));
        }
        // The length is kept modulo 4 GiB.
        if length != self.length as u32 {
            let expected = format!("{length} bytes, but for multiples of 4 GiB");
            return Err(Damage::new(format!("{} bytes of text in a member", self.length)).expected(expected));
        }
        self.members += 1;
        Ok(Place::Between)
    }

    fn garbage(&self) -> Damage {
        match self.members {
            0 => Damage::new("bytes that are no gzip").expected("the start of a gzip member"),
            _ => Damage::new("other bytes behind the end of the last member")
                .expected("the end of the file, zeros, or one more member"),
        }
    }
}

impl Decoder for Gzip {
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Damage> {
        if self.place == Place::Body {
            return self.inflate(input, output);
        }
        let mut consumed = 0;
        while consumed < input.len() && self.place != Place::Body {
            self.take(input[consumed])?;
            consumed += 1;
            if self.place == Place::Between {
                break;
            }
        }
        Ok(Step { consumed, produced: 0 })
    }

    fn is_between(&self) -> bool {
        self.place == Place::Between
    }

    fn end(&self) -> Result<(), Damage> {
        match self.place {
            Place::Between | Place::Padding if self.members > 0 => Ok(()),
            Place::Between => Err(Damage::new("nothing").expected("a gzip member")),
            Place::Trailer(_) => Err(Damage::new("the end of the file inside a checksum")),
            Place::Body => Err(Damage::new("the end of the file inside a member")),
            _ => Err(Damage::new("the end of the file inside the header of a member")),
        }
    }
}
