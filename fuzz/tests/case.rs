//! How a failed call is written as bytes.

use unstuck_fuzz::case::Case;
use unstuck_judge::{Call, Outcome};

#[test]
fn pieces_add_up_to_the_whole() {
    let case = Case::decode(&[0, 1, 0, 0, 3, 0, 2, 0]);
    let pieces: Vec<&[u8]> = case.pieces(b"hello, world").collect();
    assert_eq!(pieces.concat(), b"hello, world");
    assert!(pieces.iter().any(|piece| piece.is_empty()) && pieces.len() > 4, "{pieces:?}");
}

#[test]
fn what_was_written_is_read_again() {
    let bytes = Case::encode(1, "ls x", "out", "err", "");
    let observation = Case::decode(&bytes).observation();
    assert_eq!(observation.call, Call::shell("ls x"));
    assert_eq!(
        (&*observation.stdout, &*observation.stderr, &*observation.merged),
        (&b"out"[..], &b"err"[..], &b""[..])
    );
    assert_eq!(observation.outcome, Outcome::Exited { code: 1 });
}
