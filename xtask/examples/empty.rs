//! The least a hook can do: it reads its input to the end and says nothing. What a start costs is compared with it.

use std::io;

fn main() -> io::Result<()> {
    io::copy(&mut io::stdin().lock(), &mut io::sink()).map(drop)
}
