//! The index of git, read just far enough to tell whether two of them say the same. Git writes it again whenever somebody
//! looks at the state of a tree, with nothing new in it but when files were last looked at; whoever did so changed nothing.

/// What is staged.
#[derive(Debug, Default, PartialEq, Eq)]
struct Index {
    /// In order.
    entries: Vec<Staged>,
    /// How conflicts were resolved, as git writes it.
    resolved: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
struct Staged {
    name: Vec<u8>,
    mode: u32,
    object: Vec<u8>,
    flags: [u16; 2],
}

/// Do both say the same? What cannot be read says nothing.
pub(crate) fn says_the_same(one: &[u8], other: &[u8]) -> bool {
    // Nothing in it tells how long the names of objects are.
    [20, 32].into_iter().any(|length| {
        let index = Index::read(one, length);
        index.is_some() && index == Index::read(other, length)
    })
}

impl Index {
    fn read(bytes: &[u8], hash: usize) -> Option<Index> {
        let body = bytes.get(..bytes.len().checked_sub(hash)?)?;
        let mut reader = Reader { bytes: body, at: 0 };
        if reader.take(4)? != b"DIRC" {
            return None;
        }
        let version = reader.u32()?;
        if !(2..=4).contains(&version) {
            return None;
        }
        let count = reader.u32()?;
        let mut index = Index::default();
        let mut name: Vec<u8> = Vec::new();
        for _ in 0..count {
            let begin = reader.at;
            // When and where it was last looked at.
            reader.take(24)?;
            let mode = reader.u32()?;
            reader.take(12)?;
            let object = reader.take(hash)?.to_vec();
            let flags = reader.u16()?;
            let further = if flags & 0x4000 != 0 && version >= 3 { reader.u16()? } else { 0 };
            if version == 4 {
                let shorter = reader.number()?;
                name.truncate(name.len().checked_sub(shorter)?);
                name.extend_from_slice(reader.until_zero()?);
            } else {
                name = reader.until_zero()?.to_vec();
                let length = (reader.at - begin).next_multiple_of(8);
                reader.at = begin + length;
            }
            index.entries.push(Staged { name: name.clone(), mode, object, flags: [flags, further] });
        }
        while reader.at < body.len() {
            let (mark, length) = (reader.take(4)?, reader.u32()?);
            let content = reader.take(length as usize)?;
            match mark {
                b"REUC" => index.resolved = content.to_vec(),
                // What must be understood begins with a small letter: the entries above are not all there is.
                mark if !mark[0].is_ascii_uppercase() => return None,
                _ => {}
            }
        }
        Some(index)
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(taken)
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    /// Seven bits in each byte, the highest first; each further byte counts one more.
    fn number(&mut self) -> Option<usize> {
        let mut byte = self.take(1)?[0];
        let mut number = usize::from(byte & 127);
        while byte & 128 != 0 {
            byte = self.take(1)?[0];
            number = number.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 127))?;
        }
        Some(number)
    }

    fn until_zero(&mut self) -> Option<&'a [u8]> {
        let length = self.bytes.get(self.at..)?.iter().position(|byte| *byte == 0)?;
        let taken = self.take(length)?;
        self.at += 1;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(version: u32, entries: &[(&str, u8)], looked_at: u8, extension: &[u8]) -> Vec<u8> {
        let mut bytes = b"DIRC".to_vec();
        bytes.extend_from_slice(&version.to_be_bytes());
        bytes.extend_from_slice(&(entries.len() as u32).to_be_bytes());
        let mut before = 0;
        for (name, object) in entries {
            let begin = bytes.len();
            bytes.extend_from_slice(&[looked_at; 24]);
            bytes.extend_from_slice(&0o100644_u32.to_be_bytes());
            bytes.extend_from_slice(&[looked_at; 12]);
            bytes.extend_from_slice(&[*object; 20]);
            bytes.extend_from_slice(&(name.len() as u16).to_be_bytes());
            if version == 4 {
                bytes.push(before);
                before = name.len() as u8;
            }
            bytes.extend_from_slice(name.as_bytes());
            bytes.push(0);
            while version < 4 && !(bytes.len() - begin).is_multiple_of(8) {
                bytes.push(0);
            }
        }
        bytes.extend_from_slice(extension);
        bytes.extend_from_slice(&[looked_at; 20]);
        bytes
    }

    #[track_caller]
    fn check(one: &[u8], other: &[u8], same: bool) {
        assert_eq!(says_the_same(one, other), same);
    }

    #[test]
    fn when_files_were_looked_at_makes_no_difference() {
        for version in [2, 3, 4] {
            let entries = [("a.rs", 1), ("src/b.rs", 2)];
            let one = index(version, &entries, 3, b"");
            check(&one, &index(version, &entries, 9, b"TREE\0\0\0\x02ab"), true);
            check(&one, &index(version, &[("a.rs", 1), ("src/b.rs", 7)], 3, b""), false);
            check(&one, &index(version, &entries[..1], 3, b""), false);
        }
    }

    #[test]
    fn what_cannot_be_read_says_nothing() {
        let one = index(2, &[("a", 1)], 3, b"link\0\0\0\0");
        check(&one, &one, false);
        check(b"", b"", false);
        let whole = index(2, &[("a", 1), ("b", 2)], 3, b"");
        for length in 0..whole.len() {
            check(&whole[..length], &whole[..length], false);
        }
    }
}
