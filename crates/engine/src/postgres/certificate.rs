//! The few fields of an X.509 certificate that the TLS library does not show. Never panics, whatever the bytes.

use ring::digest::{self, Algorithm, SHA256, SHA384, SHA512};

const SEQUENCE: u8 = 0x30;
const OBJECT_IDENTIFIER: u8 = 0x06;
const OCTET_STRING: u8 = 0x04;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
const DNS_NAME: u8 = 0x82;
const IP_ADDRESS: u8 = 0x87;

const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const SUBJECT_ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1d, 0x11];

/// Signature algorithms and the hash of `tls-server-end-point`: their own, but never less than SHA-256 (RFC 5929).
const END_POINT_HASHES: &[(&[u8], &Algorithm)] = &[
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x04], &SHA256), // md5WithRSAEncryption
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x05], &SHA256), // sha1WithRSAEncryption
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b], &SHA256), // sha256WithRSAEncryption
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0c], &SHA384), // sha384WithRSAEncryption
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0d], &SHA512), // sha512WithRSAEncryption
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01], &SHA256),             // ecdsa-with-SHA1
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02], &SHA256),       // ecdsa-with-SHA256
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03], &SHA384),       // ecdsa-with-SHA384
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x04], &SHA512),       // ecdsa-with-SHA512
];

/// One element of DER.
#[derive(Clone, Copy)]
struct Element<'a> {
    tag: u8,
    content: &'a [u8],
    /// Tag, length and content.
    whole: &'a [u8],
}

/// The elements of a constructed one.
struct Elements<'a>(&'a [u8]);

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x84 => {
                let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (digits.iter().fold(0_usize, |length, digit| length << 8 | usize::from(*digit)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        let whole = &self.0[..self.0.len() - rest.len()];
        self.0 = rest;
        Some(Element { tag, content, whole })
    }
}

impl<'a> Element<'a> {
    fn elements(self) -> Elements<'a> {
        Elements(self.content)
    }

    fn is(self, tag: u8) -> Option<Element<'a>> {
        Some(self).filter(|element| element.tag == tag)
    }
}

/// The parts of the signed body that follow its version and serial number.
struct Body<'a> {
    validity: Element<'a>,
    subject: Element<'a>,
    public_key: Element<'a>,
    extensions: Option<Element<'a>>,
}

fn body(certificate: &[u8]) -> Option<Body<'_>> {
    let signed = Elements(certificate).next()?.is(SEQUENCE)?.elements().next()?.is(SEQUENCE)?;
    let mut parts = signed.elements().filter(|part| part.tag != VERSION).skip(3); // serial number, algorithm, issuer
    Some(Body {
        validity: parts.next()?.is(SEQUENCE)?,
        subject: parts.next()?.is(SEQUENCE)?,
        public_key: parts.next()?.is(SEQUENCE)?,
        extensions: parts.find(|part| part.tag == EXTENSIONS),
    })
}

/// Hash for channel binding; None for algorithms whose hash is not in their name.
pub fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let algorithm = Elements(certificate).next()?.is(SEQUENCE)?.elements().nth(1)?;
    let identifier = algorithm.elements().next()?.is(OBJECT_IDENTIFIER)?.content;
    let (_, hash) = END_POINT_HASHES.iter().find(|(known, _)| *known == identifier)?;
    Some(digest::digest(hash, certificate).as_ref().to_vec())
}

/// The SubjectPublicKeyInfo.
pub fn public_key(certificate: &[u8]) -> Option<&[u8]> {
    Some(body(certificate)?.public_key.whole)
}

/// First and last second at which it is valid, since 1970.
pub fn validity(certificate: &[u8]) -> Option<(i64, i64)> {
    let mut times = body(certificate)?.validity.elements();
    Some((seconds(times.next()?)?, seconds(times.next()?)?))
}

/// The common name, unless the certificate has names or addresses that are made for hosts.
pub fn common_name_if_alone(certificate: &[u8]) -> Option<String> {
    let body = body(certificate)?;
    if has_host_names(&body) {
        return None;
    }
    body.subject.elements().flat_map(Element::elements).find_map(|attribute| {
        let mut parts = attribute.elements();
        parts.next().filter(|kind| kind.content == COMMON_NAME)?;
        // A NUL inside would hide the rest from other programs.
        let name = String::from_utf8(parts.next()?.content.to_vec()).ok()?;
        Some(name).filter(|name| !name.contains('\0'))
    })
}

fn has_host_names(body: &Body<'_>) -> bool {
    let extensions = body.extensions.into_iter().flat_map(Element::elements).flat_map(Element::elements);
    extensions
        .filter(|extension| extension.elements().next().is_some_and(|kind| kind.content == SUBJECT_ALTERNATIVE_NAME))
        .filter_map(|extension| extension.elements().find(|part| part.tag == OCTET_STRING))
        .flat_map(Element::elements)
        .flat_map(Element::elements)
        .any(|name| matches!(name.tag, DNS_NAME | IP_ADDRESS))
}

/// `YYMMDDHHMMSSZ` (of 1950 to 2049) or `YYYYMMDDHHMMSSZ`.
fn seconds(time: Element<'_>) -> Option<i64> {
    let text = std::str::from_utf8(time.content).ok()?.strip_suffix('Z')?;
    if !text.bytes().all(|letter| letter.is_ascii_digit()) {
        return None;
    }
    let (year, rest) = match (time.tag, text.len()) {
        (UTC_TIME, 12) => {
            let year: i64 = text[..2].parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, &text[2..])
        }
        (GENERALIZED_TIME, 14) => (text[..4].parse().ok()?, &text[4..]),
        _ => return None,
    };
    let part = |from: usize| rest[from..from + 2].parse::<i64>().ok();
    let (month, day, hour, minute, second) = (part(0)?, part(2)?, part(4)?, part(6)?, part(8)?);
    // Days since 1970 of the proleptic Gregorian calendar; years start in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days =
        365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + (153 * month + 2) / 5 + day
            - 719_469;
    Some(days * 86_400 + hour * 3_600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, date_time_ymd};

    fn certificate(hosts: &[&str], key: &KeyPair) -> Vec<u8> {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut parameters = CertificateParams::new(hosts).unwrap();
        parameters.distinguished_name.push(DnType::OrganizationName, "Headrace");
        parameters.distinguished_name.push(DnType::CommonName, "db.example.com");
        parameters.not_before = date_time_ymd(2024, 2, 29);
        parameters.not_after = date_time_ymd(2070, 12, 31);
        parameters.self_signed(key).unwrap().der().to_vec()
    }

    #[test]
    fn fields_of_a_certificate() {
        let key = KeyPair::generate().unwrap();
        let plain = certificate(&[], &key);
        assert_eq!(validity(&plain), Some((1_709_164_800, 3_187_209_600)));
        assert_eq!(common_name_if_alone(&plain).as_deref(), Some("db.example.com"));
        for hosts in [&["localhost"][..], &["10.0.0.1"]] {
            assert_eq!(common_name_if_alone(&certificate(hosts, &key)), None);
        }
        assert!(public_key(&plain).unwrap().ends_with(key.public_key_raw()));
    }

    #[test]
    fn channel_binding_takes_the_hash_of_the_signature() {
        let length = |algorithm| {
            let key = KeyPair::generate_for(algorithm).unwrap();
            end_point(&certificate(&[], &key)).map(|hash| hash.len())
        };
        assert_eq!(length(&rcgen::PKCS_ECDSA_P256_SHA256), Some(32));
        assert_eq!(length(&PKCS_ECDSA_P384_SHA384), Some(48));
        assert_eq!(length(&PKCS_ED25519), None);
    }

    #[test]
    fn damaged_certificates_are_harmless() {
        let whole = certificate(&["localhost"], &KeyPair::generate().unwrap());
        let read = |bytes: &[u8]| {
            let _ = (end_point(bytes), public_key(bytes), validity(bytes), common_name_if_alone(bytes));
        };
        for position in 0..whole.len() {
            read(&whole[..position]);
            for value in [0, 1, 0x30, 0x7f, 0x80, 0x84, 0xff] {
                let mut bytes = whole.clone();
                bytes[position] = value;
                read(&bytes);
            }
        }
    }
}
