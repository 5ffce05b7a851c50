//! A plain JSON recogniser: whether bytes are one JSON document (RFC 8259), nothing more.

/// Whether `bytes` are one document with nothing but white space around it.
pub fn is_document(bytes: &[u8]) -> bool {
    let mut reader = Reader { bytes, at: 0 };
    reader.value() && reader.end()
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn end(&mut self) -> bool {
        self.blanks();
        self.at == self.bytes.len()
    }

    /// Takes `text` if it comes next.
    fn take(&mut self, text: &[u8]) -> bool {
        let found = self.bytes[self.at..].starts_with(text);
        self.at += if found { text.len() } else { 0 };
        found
    }

    fn value(&mut self) -> bool {
        self.blanks();
        match self.peek() {
            Some(b'{') => self.members(b'}', true),
            Some(b'[') => self.members(b']', false),
            Some(b'"') => self.string(),
            Some(b't') => self.take(b"true"),
            Some(b'f') => self.take(b"false"),
            Some(b'n') => self.take(b"null"),
            _ => self.number(),
        }
    }

    fn members(&mut self, close: u8, named: bool) -> bool {
        self.at += 1;
        self.blanks();
        if self.take(&[close]) {
            return true;
        }
        loop {
            if named {
                self.blanks();
                if self.peek() != Some(b'"') || !self.string() {
                    return false;
                }
                self.blanks();
                if !self.take(b":") {
                    return false;
                }
            }
            if !self.value() {
                return false;
            }
            self.blanks();
            if self.take(&[close]) {
                return true;
            }
            if !self.take(b",") {
                return false;
            }
        }
    }

    fn string(&mut self) -> bool {
        self.at += 1;
        loop {
            let Some(character) = self.peek() else { return false };
            self.at += 1;
            match character {
                b'"' => return true,
                b'\\' => {
                    let Some(escape) = self.peek() else { return false };
                    self.at += 1;
                    if escape == b'u' {
                        let digits = self.bytes.get(self.at..self.at + 4);
                        if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                            return false;
                        }
                        self.at += 4;
                    } else if !b"\"\\/bfnrt".contains(&escape) {
                        return false;
                    }
                }
                0..0x20 => return false,
                _ => {}
            }
        }
    }

    fn digits(&mut self) -> bool {
        let from = self.at;
        while self.peek().is_some_and(|character| character.is_ascii_digit()) {
            self.at += 1;
        }
        self.at > from
    }

    fn number(&mut self) -> bool {
        self.take(b"-");
        if !self.take(b"0") && !self.digits() {
            return false;
        }
        if self.take(b".") && !self.digits() {
            return false;
        }
        if self.take(b"e") || self.take(b"E") {
            if !self.take(b"+") {
                self.take(b"-");
            }
            return self.digits();
        }
        true
    }
}
